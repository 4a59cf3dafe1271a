"""What the tests under act share: one rig, so that the action installs itself once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.act.rig import Rig, act_program, copy_tree


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """One for all workflows; processes of one run share what the action installs, as runners of one machine do."""
    act = act_program()
    if act is None:
        if os.environ.get("DRIFTGATE_REQUIRE_TOOLS"):
            pytest.fail("act is not installed; `make act` installs it")
        pytest.skip("act is not installed")
    base = tmp_path_factory.getbasetemp()
    runner = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "runner"
    return Rig(act=act, tree=copy_tree(tmp_path_factory.mktemp("tree")), runner=runner)


@pytest.fixture
def workflows() -> Path:
    """The workflows of these tests."""
    return Path(__file__).parent / "workflows"
