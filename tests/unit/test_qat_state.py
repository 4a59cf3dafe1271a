"""Networks of the QAT plugin are put into VALIDATION by the torch worker; tests/field does the same with real torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftgate.backends.workers import torch_worker
from driftgate.backends.workers.torch_worker import PLUGIN, hold_ranges, plugin_version
from driftgate.messages.message import Message
from driftgate.messages.text import text

Failure = torch_worker.Failure  # type: ignore[attr-defined]  # of the protocol beside the worker, as it runs

QUANTIZATION = """
from enum import Enum

class FakeQuantState(Enum):
    QAT = 1
    VALIDATION = 2

def set_fake_quantize(model, state):
    for module in model.modules():
        module.state = state
"""


class Network:
    """What the worker asks of an nn.Module here: the modules inside, itself first."""

    def __init__(self, *inside: Any) -> None:
        self.inside = inside

    def modules(self) -> Iterator[Any]:
        """Itself and those inside."""
        yield self
        for module in self.inside:
            yield from module.modules()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is imported from, and whose plugin is forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == PLUGIN]:
        del sys.modules[name]


def install(site: Path, quantization: str = QUANTIZATION) -> type:
    """A plugin with this much of `quantization`; the type of its convolution."""
    folder = site / PLUGIN
    (folder / "nn" / "qat").mkdir(parents=True)
    (folder / "__init__.py").write_text('__version__ = "3.1.2"\n')
    (folder / "quantization.py").write_text(quantization)
    for inner in (folder / "nn", folder / "nn" / "qat"):
        (inner / "__init__.py").write_text("")
    (folder / "nn" / "qat" / "conv2d.py").write_text("class Conv2d: pass\n")
    found: type = importlib.import_module(f"{PLUGIN}.nn.qat.conv2d").Conv2d
    return found


def of_type(kind: type, *inside: Any) -> Any:
    """A module that is of a type, and a network."""
    return type(kind.__name__, (kind, Network), {"__module__": kind.__module__})(*inside)


def test_every_module_of_a_qat_network_is_in_validation(site: Path) -> None:
    network = Network(of_type(install(site)), Network())
    assert hold_ranges(network) == ("fake-quant validation",)
    assert [module.state.name for module in network.modules()] == ["VALIDATION"] * 3


def test_a_type_that_derives_from_one_of_the_plugin_is_enough(site: Path) -> None:
    own = type("OwnConv", (install(site), Network), {"__module__": "nets.own"})
    assert own.__module__ == "nets.own"
    assert hold_ranges(Network(own())) == ("fake-quant validation",)


def test_a_plain_network_is_left_alone_and_the_plugin_is_not_imported(site: Path) -> None:
    (site / f"{PLUGIN}.py").write_text("raise SystemExit('imported')\n")
    network = Network(Network())
    assert hold_ranges(network) == ()
    assert all(vars(module).keys() == {"inside"} for module in network.modules())
    assert PLUGIN not in sys.modules


def test_a_float_network_is_left_alone_although_its_loader_imported_the_plugin(site: Path) -> None:
    install(site)
    network = Network(Network())
    assert hold_ranges(network) == ()
    assert not hasattr(network, "state")


def test_a_name_that_only_begins_like_the_plugins_is_another_package() -> None:
    other = type("Conv2d", (Network,), {"__module__": f"{PLUGIN}_extra.nn"})
    assert hold_ranges(Network(other())) == ()


@pytest.mark.parametrize(
    ("quantization", "word"),
    [
        ("from enum import Enum\n", "set_fake_quantize"),
        (QUANTIZATION.replace("class FakeQuantState", "class FakeQuantMode"), "FakeQuantState"),
        (QUANTIZATION.replace("VALIDATION = 2", "CALIBRATION = 2"), "VALIDATION"),
        ("import a_library_that_is_not_there\n", "a_library_that_is_not_there"),
    ],
    ids=["no-function", "no-states", "no-such-state", "broken"],
)
def test_a_release_without_that_state_is_named_with_what_to_do(quantization: str, word: str, site: Path) -> None:
    network = Network(of_type(install(site, quantization)))
    with pytest.raises(Failure) as caught:
        hold_ranges(network)
    report = caught.value.report
    assert (report["kind"], report["code"]) == ("tool", "torch-fake-quant")
    given = {"stage": "qat", "command": "/opt/train/bin/python", **report["params"], "found": ("Conv2d",)}
    said = text(Message(report["code"], tuple(sorted(given.items()))))
    for told in (
        "qat:",
        "horizon_plugin_pytorch 3.1.2",
        "Conv2d",
        word,
        "/opt/train/bin/python",
        "name an interpreter",
    ):
        assert told in said


def test_types_are_named_each_once_and_not_without_end(site: Path) -> None:
    kind = install(site, "")
    kinds = [type(f"Layer{number}", (kind, Network), {}) for number in range(9)]
    with pytest.raises(Failure) as caught:
        hold_ranges(Network(*(kind() for kind in kinds * 2)))
    assert caught.value.params["found"] == ["Layer0", "Layer1", "Layer2"][: torch_worker.SHOWN_TYPES]


def test_the_plugins_version_is_told_without_importing_it(site: Path) -> None:
    assert plugin_version() == {}
    (site / f"{PLUGIN}-3.1.2.dist-info").mkdir()
    (site / f"{PLUGIN}-3.1.2.dist-info" / "METADATA").write_text(f"Name: {PLUGIN}\nVersion: 3.1.2\n")
    assert plugin_version() == {PLUGIN: "3.1.2"}
    assert PLUGIN not in sys.modules
