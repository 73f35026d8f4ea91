# One command each: make setup | demo | test | lint | format | sanitize | bench | clean.
# Each works alone on a fresh machine with Python 3.11, g++ 12, make and git; what is up to date is not done again.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || echo python3)
JOBS ?= $(shell nproc)
# One compiler for CMake and for pip: what one of them has built, ccache has for the other.
export CXX
# Where pip finds torch: the default index unless told otherwise, e.g. TORCH_PIP_ARGS="--index-url <CPU wheels>".
TORCH_PIP_ARGS ?=
PYTEST_ARGS ?= -n $(JOBS) --dist loadfile

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
CORE := build/core
STAMPS := $(VENV)/stamps
CMAKE_CORE = $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
  -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DTPU_BUILD_TORCH=OFF -DTPU_BUILD_TESTS=ON
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

CPP_FILES = $(shell find csrc tests/core -name '*.h' -o -name '*.cc' -o -name '*.cpp')
CORE_FILES = $(shell find csrc/core -name '*.cc')
EXTENSION_SOURCES = CMakeLists.txt pyproject.toml $(shell find csrc -type f)

.PHONY: help
help:
	@sed -n '2,2p;1s/^# //p' Makefile

# ---------------------------------------------------------------- setup
.PHONY: setup tools system
setup: $(STAMPS)/package
tools: $(STAMPS)/tools

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "== virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "could not make $(VENV): on Debian, apt-get install python3-venv"; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/torch: | $(STAMPS)/venv
	@echo "== torch 2.13.0"
	@$(PIP) install $(TORCH_PIP_ARGS) numpy torch==2.13.0
	@touch $@

$(STAMPS)/tools: requirements/build.txt requirements/lint.txt | $(STAMPS)/torch
	@echo "== build and lint tools"
	@$(PIP) install -r requirements/build.txt -r requirements/lint.txt
	@touch $@

# Editable: Python is read from the work tree; C++ is rebuilt here, incrementally in build/, when a source changed.
$(STAMPS)/package: $(EXTENSION_SOURCES) $(STAMPS)/tools
	@echo "== torchtpu, with the packages of its tests and examples"
	@command -v $(CXX) >/dev/null || { echo "a C++20 compiler is needed: on Debian, apt-get install g++"; exit 1; }
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) install --no-build-isolation --editable '.[test,examples]'
	@touch $@

# GoogleTest comes from the system. Installed only when missing, and only where that is possible.
system:
	@if ! printf '#include <gtest/gtest.h>\n' | $(CXX) -x c++ -fsyntax-only - 2>/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== GoogleTest and ccache from the distribution"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ libgtest-dev ccache >/dev/null; \
	  else \
	    echo "the tests of the C++ core need a C++ compiler and GoogleTest: sudo apt-get install g++ libgtest-dev"; exit 1; \
	  fi; \
	fi

# ---------------------------------------------------------------- run
.PHONY: demo bench
demo: setup
	@$(BIN)/python examples/demo/demo.py

bench: setup
	@$(BIN)/python benchmarks/run.py

# ---------------------------------------------------------------- test
.PHONY: test test-core test-python sanitize
test: test-core test-python

test-core: system tools
	@$(CMAKE_CORE) -B $(CORE) >/dev/null
	@$(BIN)/cmake --build $(CORE)
	@$(BIN)/ctest --test-dir $(CORE) --output-on-failure --no-tests=error

test-python: setup
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

sanitize: system tools
	@$(CMAKE_CORE) -B build/address '-DTPU_SANITIZE=address;undefined' >/dev/null
	@$(BIN)/cmake --build build/address
	@$(BIN)/ctest --test-dir build/address --output-on-failure --no-tests=error
	@$(CMAKE_CORE) -B build/thread -DTPU_SANITIZE=thread >/dev/null
	@$(BIN)/cmake --build build/thread
	@$(BIN)/ctest --test-dir build/thread --output-on-failure --no-tests=error

# ---------------------------------------------------------------- lint
.PHONY: lint lint-python lint-format lint-tidy format
lint: lint-format lint-python lint-tidy

lint-format: tools
	@echo "== clang-format"
	@$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)

lint-python: tools
	@echo "== ruff"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "== mypy"
	@$(BIN)/mypy

# A file is checked again only when it or a header changed.
TIDY_STAMPS = $(CORE_FILES:csrc/%.cc=build/tidy/%.ok)
lint-tidy: tools
	@$(CMAKE_CORE) -B build/tidy -DTPU_BUILD_TESTS=OFF >/dev/null
	@echo "== clang-tidy"
	@$(MAKE) --silent --no-print-directory -j$(JOBS) $(TIDY_STAMPS)

build/tidy/%.ok: csrc/%.cc .clang-tidy $(shell find csrc/core -name '*.h')
	@mkdir -p $(@D)
	@$(BIN)/clang-tidy --quiet -p build/tidy $< 2> >(grep -v 'warnings generated' >&2)
	@touch $@

format: tools
	@$(BIN)/clang-format -i $(CPP_FILES)
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

.PHONY: clean
clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache
