"""The contenders of a benchmark run, each a process asked over a pipe."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT = 600.0
FIRST_RESULT = "import torch; (torch.ones(8, 8, device={device!r}) + 1).cpu()"


class Failure(Exception):
    """A contender did not answer a request with a number; the text says why."""


class Contender:
    """A way to run the measures: an interpreter, its environment, and one worker process started on demand.

    `name` is "ours", "cpu" or "google"; `python` the interpreter; `cache` a folder private to the run in which the
    contender keeps its compiled programs, so that a warm start is measured with each project's own disk cache.
    """

    def __init__(self, name: str, python: str | Path, cache: Path) -> None:
        self.name = name
        self.python = str(python)
        own = {
            "ours": {"TORCH_TPU_CACHE_DIR": str(cache)},
            "google": {"TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT": str(cache)},
            "cpu": {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        }
        self.environment = os.environ | own[name]
        cache.mkdir(parents=True, exist_ok=True)
        self._log = cache / "worker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def sample(self, measure: str) -> tuple[float, float]:
        """One sample of a measure as (value, check). Raises Failure; the contender can be asked again then."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"measure": measure}).encode() + b"\n")
            ready, _, _ = select.select([process.stdout], [], [], TIMEOUT)
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = b""
        if not line:
            self.close()
            if line is None:
                raise Failure(f"no answer in {TIMEOUT:.0f} s")
            raise Failure(f"the process ended: {last_line(self._log.read_text(errors='replace'))}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer["value"], answer["check"]

    def first_result(self) -> float:
        """Wall time in seconds of a whole process that imports torch and computes and reads one op."""
        code = FIRST_RESULT.format(device="cpu" if self.name == "cpu" else "tpu")
        if self.name == "google":
            code = "import peer; " + code
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [self.python, "-c", code],
                env=self.environment,
                cwd=self._log.parent,  # not the checkout: its torch_tpu is not Google's
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"no result in {TIMEOUT:.0f} s") from None
        seconds = time.perf_counter() - start
        if done.returncode:
            raise Failure(f"exit code {done.returncode}: {last_line(done.stderr)}")
        return seconds

    def versions(self) -> str:
        """The versions of torch and of the backend that this contender runs, as one line of text."""
        packages = {"ours": ["torchtpu"], "google": ["torch-tpu"], "cpu": []}[self.name]
        code = (
            "import importlib.metadata as m\n"
            f"for p in ['torch', *{packages}]:\n"
            "    try: print(p, m.version(p))\n"
            "    except m.PackageNotFoundError: print(p, 'not installed')"
        )
        done = subprocess.run([self.python, "-c", code], env=self.environment, capture_output=True, text=True)
        return ", ".join(done.stdout.split("\n")[:-1])

    def close(self) -> None:
        """Ends the worker process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self.python, str(HERE / "worker.py"), self.name],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )
        return self._process


def last_line(text: str) -> str:
    """The last line of what a process wrote, or a word saying that it wrote nothing."""
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def contenders(peer: str | None, cache: Path) -> list[Contender]:
    """Ours and plain CPU torch in this interpreter, and Google's torch-tpu if `peer` names its environment."""
    found = [
        Contender("ours", sys.executable, cache / "ours"),
        Contender("cpu", sys.executable, cache / "cpu"),
    ]
    if peer:
        found.append(Contender("google", Path(peer) / "bin" / "python", cache / "google"))
    return found
