"""python -m torch_tpu"""

import json

import pytest

from torch_tpu import _C, cli


def test_env_lists_every_variable(capsys, monkeypatch):
    monkeypatch.setenv("TORCH_TPU_LOG", "compiles")
    assert cli.main(["env"]) == 0
    out = capsys.readouterr().out
    assert "TORCH_TPU_LOG = compiles\n" in out
    for name, _, _, meaning in _C.environment():
        assert f"{name} = " in out
        assert meaning in out


def test_info(capsys):
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["active"] is True
    assert len(facts["devices"]) == _C.device_count()
    assert facts["devices"][0]["memory"] > 0
    assert facts["cache"]["mode"] in ("on", "readonly", "off")
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert "tpu:0" in out
    assert facts["reason"] in out


def test_info_says_why_there_is_no_device(capsys, monkeypatch):
    monkeypatch.setenv("TORCH_TPU_PJRT_PLUGIN", "/nowhere.so")
    assert cli.main(["info"]) == 1
    assert "/nowhere.so" in capsys.readouterr().out


def test_an_unknown_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["fly"])
    assert "env" in capsys.readouterr().err
