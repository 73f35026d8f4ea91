"""What is shipped, and what `import torch` does with it."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(code: str, path: Path | None = None, **env: str) -> subprocess.CompletedProcess:
    """Runs Python code in a process of its own, away from the work tree; what `path` holds hides installed packages."""
    if path is not None:
        # An editable install is found by an import hook, which comes before sys.path: without it, `path` comes first.
        drop = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'torchtpu' not in type(f).__module__]"
        code = f"{drop}\n{code}"
        env["PYTHONPATH"] = str(path)
        shutil.copy(ROOT / "_torch_tpu_autoload.py", path)
    environment = {k: v for k, v in os.environ.items() if k != "TORCH_DEVICE_BACKEND_AUTOLOAD"} | env
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd="/", timeout=120)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this tree, built as `pip wheel .` does (without isolation, so that it needs no network)."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    built = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout[-4000:] + built.stderr[-4000:]
    (file,) = folder.glob("torchtpu-*.whl")
    return file


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_the_package_alone(wheel):
    assert wheel.stat().st_size < 5_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert "_torch_tpu_autoload.py" in names
    assert "torch_tpu/__init__.py" in names
    assert "torch_tpu/_platform.py" in names
    extensions = [n for n in names if n.endswith(".so")]
    assert len(extensions) == 1
    assert extensions[0].startswith("torch_tpu/_C")
    top = {n.split("/")[0] for n in names}
    assert {n for n in top if not n.endswith(".dist-info")} == {"torch_tpu", "_torch_tpu_autoload.py"}
    assert not [n for n in names if n.endswith((".pyc", ".a", ".h", ".cc", ".o"))]


@pytest.mark.slow
def test_the_wheel_names_its_plugin_its_torch_and_its_entry_point(wheel):
    archive = zipfile.ZipFile(wheel)
    (info,) = {n.split("/")[0] for n in archive.namelist() if ".dist-info/" in n}
    metadata = archive.read(f"{info}/METADATA").decode()
    required = [line.split(":", 1)[1].strip() for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    assert "fastatomstruct-xla-cpu==2026.6.23" in required
    assert any(r.startswith("libtpu==0.0.52;") for r in required)
    assert any(r.startswith("torch") and "2.13" in r for r in required)
    assert "License-Expression: Apache-2.0" in metadata
    assert "torch_tpu = _torch_tpu_autoload:autoload" in archive.read(f"{info}/entry_points.txt").decode()
    assert any(n.endswith("/LICENSE") for n in archive.namelist())


def test_one_entry_point_is_installed():
    points = [p for p in importlib.metadata.entry_points(group="torch.backends") if p.name == "torch_tpu"]
    assert [p.value for p in points] == ["_torch_tpu_autoload:autoload"]


def test_import_torch_is_all_it_takes():
    done = run("import torch; print(torch.ones(2, device='tpu') + 1)")
    assert done.returncode == 0, done.stderr
    assert "[2., 2.]" in done.stdout


def test_explicit_import_without_autoload():
    code = (
        "import sys, torch; assert 'torch_tpu' not in sys.modules; import torch_tpu;"
        "print(torch.ones(2, device='tpu') + 1)"
    )
    done = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert "[2., 2.]" in done.stdout


def test_explicit_import_first():
    done = run("import torch_tpu, torch; print(torch.ones(2, device='tpu') + 1)")
    assert done.returncode == 0, done.stderr
    assert "[2., 2.]" in done.stdout


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("raise ImportError('undefined symbol: _ZN3c10')", "ImportError: undefined symbol: _ZN3c10"),
        ("def broken(:", "SyntaxError"),
        ("raise RuntimeError('no device')", "RuntimeError: no device"),
    ],
)
@pytest.mark.parametrize("flags", ["", "error"])
def test_a_broken_package_leaves_torch_usable_and_warns_once(tmp_path, body, shown, flags):
    (tmp_path / "torch_tpu").mkdir()
    (tmp_path / "torch_tpu/__init__.py").write_text(body + "\n")
    warn = {"PYTHONWARNINGS": "error::RuntimeWarning"} if flags else {}
    done = run("import torch; print(torch.ones(2).sum().item())", tmp_path, **warn)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2.0"
    assert shown in done.stderr
    assert done.stderr.count("the device 'tpu' is not available") == 1
    assert "--force-reinstall" in done.stderr


def test_googles_package_is_noticed_and_ours_stands_back(tmp_path):
    info = tmp_path / "torch_tpu-0.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_tpu\nVersion: 0.2.0\n")
    done = run("import sys, torch; print('torch_tpu' in sys.modules, torch.ones(2).sum().item())", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False 2.0"
    assert "Google's torch-tpu 0.2.0 is installed too" in done.stderr
    assert "pip uninstall -y torchtpu torch-tpu" in done.stderr


def test_import_torch_stays_cheap_and_starts_no_client():
    code = """
import os, sys, time
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
start = time.process_time()
import _torch_tpu_autoload
_torch_tpu_autoload.autoload()
print(time.process_time() - start)
assert "torch_tpu" in sys.modules
assert "libpjrt" not in open("/proc/self/maps").read(), "a plugin was loaded at import"
"""
    runs = [run(code) for _ in range(5)]
    assert all(r.returncode == 0 for r in runs), runs[0].stderr
    assert min(float(r.stdout.split()[-1]) for r in runs) < 0.15
