"""The `boards` section: what it becomes, and what is refused; secrets come from the environment and are never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from driftgate.backends.board.boards import Boards
from driftgate.errors import ConfigError
from driftgate.plan import artifacts_of
from driftgate.settings.boards import BoardSettings
from driftgate.settings.load import load
from support.models import tiny
from support.project import Project, inputs
from support.vendor.models import write


def made(environment: dict[str, str], **words: Any) -> Boards:
    return BoardSettings.model_validate(words).boards(
        "lab", root=Path("/project"), w_stride=64, environment=environment
    )


def test_hosts_and_passwords_come_from_the_environment() -> None:
    boards = made(
        {"ONE": "10.0.0.7:2222", "WORD": "s3cret"},
        hosts=["${ONE}", "admin@[fe80::1]:22", "board.example"],
        password="${WORD}",
        key="keys/j6",
        jump={"host": "me@gate.example"},
    )
    one, two, three = boards.hosts
    assert (one.address, one.port, one.user, one.password) == ("10.0.0.7", 2222, "root", "s3cret")
    assert (two.address, two.user) == ("fe80::1", "admin")
    assert (three.name, three.port, three.key) == ("lab#3", 22, Path("/project/keys/j6"))
    assert one.jump is not None
    assert (one.jump.address, one.jump.user) == ("gate.example", "me")
    for secret in ("10.0.0.7", "s3cret", "fe80", "board.example", "gate.example"):
        assert secret not in repr(boards)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"hosts": ["a"], "password": "letmein"}, "not written into the configuration"),
        ({"hosts": []}, "names no hosts"),
        ({"transport": "local", "hosts": ["a"]}, "local takes no hosts"),
        ({"hosts": ["a b"]}, "address"),
        ({"hosts": ["a"], "folder": "/"}, "a folder of its own"),
        ({"hosts": ["a"], "folder": "relative"}, "a folder of its own"),
        ({"hosts": ["a"], "environment": {"A B": "1"}}, "no name of a variable"),
    ],
)
def test_words_that_cannot_be_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        BoardSettings.model_validate(words)


def test_a_password_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    made_project = project(tmp_path, boards={"lab": {"hosts": ["a.example"], "password": "letmein"}})
    with pytest.raises(ConfigError, match="not written into the configuration") as caught:
        load(made_project.write(**made_project.top))
    assert "letmein" not in str(caught.value)


def test_variables_that_are_not_set_or_hold_no_address_are_said_without_their_content() -> None:
    with pytest.raises(ConfigError, match="ONE, TWO not set"):
        made({}, hosts=["${ONE}"], password="${TWO}").places()
    with pytest.raises(ConfigError, match="not shown here") as caught:
        made({"ONE": "secret host"}, hosts=["${ONE}"])
    assert "secret" not in str(caught.value)


def project(root: Path, **more: Any) -> Project:
    write(root / "net.bc", tiny())
    write(root / "net.hbm", tiny())
    found = Project(root)
    found.subject = {
        "platform": "J6M",
        "artifacts": {"quantized": "net.bc", "hbm": "net.hbm"},
        "samples": {"raw": found.npz("eval.npz", x=inputs(2))},
    }
    found.top = {
        "defaults": {"board": "lab"},
        "boards": {"lab": {"hosts": ["a.example"], "march": "nash-m"}, "lab-J6P": {"hosts": ["b.example"]}},
        **more,
    }
    return found


def test_an_hbm_runs_on_the_default_board_and_a_bc_does_not(tmp_path: Path) -> None:
    made_project = project(tmp_path)
    config = load(made_project.write(**made_project.top))
    backends = {artifact.stage: artifact.backend for artifact in artifacts_of(config, "net", "J6M")}
    assert backends == {"quantized": "hbruntime", "hbm": "board"}


def test_a_board_for_each_target(tmp_path: Path) -> None:
    made_project = project(tmp_path, defaults={"board": "lab-{target}"})
    config = load(made_project.write(**made_project.top))
    (hbm,) = [artifact for artifact in artifacts_of(config, "net", "J6P") if artifact.stage == "hbm"]
    assert hbm.options["boards"].name == "lab-J6P"
    with pytest.raises(ConfigError, match="lab-J6M is none that is described"):
        artifacts_of(config, "net", "J6M")


def test_a_board_of_another_march_than_the_targets_is_refused(tmp_path: Path) -> None:
    made_project = project(tmp_path)
    config = load(made_project.write(**made_project.top))
    with pytest.raises(ConfigError, match="nash-m, which is not the march of J6P"):
        artifacts_of(config, "net", "J6P")


def test_boards_that_are_not_described_are_named_at_their_line(tmp_path: Path) -> None:
    made_project = project(tmp_path, defaults={"board": "nowhere"})
    with pytest.raises(ConfigError, match=r"nowhere.*lab"):
        load(made_project.write(**made_project.top))
