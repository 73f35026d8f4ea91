"""The documents agree with the code. Run as a program, this file rewrites the table in docs/environment.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "user-guide.md"
ENVIRONMENT = ROOT / "docs" / "environment.md"
DOCUMENTS = [ROOT / name for name in ("README.md", "CHANGELOG.md", "examples/README.md")] + sorted(
    ROOT.glob("docs/*.md")
)

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"<!-- code: (\S+) -->\n```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)


def python_of(document: str) -> str:
    """The Python examples of a document, as one program."""
    return "\n".join(code for language, code in FENCE.findall((ROOT / document).read_text()) if language == "python")


def variables() -> dict[str, tuple[str, str]]:
    """The registry of environment variables, read from its source: name -> default and meaning."""
    source = joined((ROOT / "csrc/core/base/env.cc").read_text())
    rows = re.findall(r'\{"(TORCH_TPU_\w+)", "([^"]*)",\s*"([^"]*)"\}', source)
    return {name: (default, meaning) for name, default, meaning in rows}


def joined(source: str) -> str:
    """C++ or Python source in which string literals that follow each other are one."""
    return re.sub(r'"\s*\n\s*f?"', "", source)


def environment_table() -> str:
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, (default, meaning) in variables().items():
        shown = f"`{default}`" if default else "not set"
        rows.append(f"| `{name}` | {shown} | {meaning} |")
    return "\n".join(rows) + "\n"


def anchors(document: Path) -> set[str]:
    """The names GitHub gives a document's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def run(program: str, folder: Path) -> str:
    """Runs a program in a fresh interpreter in which no operator may fall back to the host; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import torch_tpu\n" + program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TORCH_TPU_FALLBACK": "error"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readmes_example_learns(tmp_path):
    printed = run(python_of("README.md"), tmp_path)
    loss = float(re.search(r"loss (\S+) on \S", printed)[1])
    assert loss < 0.01  # a constant would give the variance of the product, 7 / 144


def test_the_guides_examples_run(tmp_path):
    printed = run(python_of("docs/user-guide.md"), tmp_path)
    assert "tensor([2., 2.], device='tpu:0')" in printed
    assert "torch.bfloat16 torch.float32" in printed
    assert "embedding: index 9 is out of bounds for dimension 0 with size 4" in printed


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    broken = []
    for target in LINK.findall(FENCE.sub("", document.read_text())):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.is_relative_to(ROOT) or not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


def test_every_document_is_in_the_readme():
    linked = LINK.findall((ROOT / "README.md").read_text())
    missing = [d.name for d in ROOT.glob("docs/*.md") if f"docs/{d.name}" not in linked]
    assert not missing


def test_the_table_of_variables_is_in_step():
    assert len(variables()) == len(re.findall(r'\{"TORCH_TPU_', (ROOT / "csrc/core/base/env.cc").read_text()))
    assert TABLE.search(ENVIRONMENT.read_text())[0] == environment_table(), "run python tests/test_docs.py"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_variables_exist(document):
    named = set(re.findall(r"\bTORCH_TPU_[A-Z_]+\b", document.read_text()))
    assert named <= variables().keys()


def test_topics_of_the_log_exist():
    section = re.search(r"^\| topic .*?(?=\n\n)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)[0]
    topics = set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) - {"all"}
    sources = "".join(f.read_text() for f in ROOT.glob("csrc/**/*.cc"))
    assert topics
    assert topics <= set(re.findall(r'\blogs?\("(\w+)"', sources))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_code_is_that_of_the_sources(document):
    text = document.read_text()
    for path, code in SNIPPET.findall(text):
        assert code in (ROOT / path).read_text(), path
    built = text.count("<!-- builds -->")  # by the tests of the core
    assert len(SNIPPET.findall(text)) + built == sum(language == "cpp" for language, _ in FENCE.findall(text))


def test_messages_are_those_of_the_sources():
    files = [*ROOT.glob("csrc/**/*.cc"), *ROOT.glob("torch_tpu/**/*.py"), ROOT / "_torch_tpu_autoload.py"]
    sources = "\n".join(joined(f.read_text()) for f in files)
    messages = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    assert messages
    parts = [part for message in messages for part in message.split("…") if part.strip(" .:;,'=")]
    assert not [part for part in parts if part not in sources]


def test_no_path_of_a_machine():
    for document in DOCUMENTS:
        assert not re.search(r"(?<![\w.])/(root|home|work|tmp)/", document.read_text()), document


if __name__ == "__main__":
    ENVIRONMENT.write_text(TABLE.sub(lambda _: environment_table(), ENVIRONMENT.read_text()))
