"""The vendor's runtime absent, dying, hanging, giving too little or of another generation, in a whole chain: ERROR."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from driftgate.messages.text import text
from support.chains import Chain, only, outcomes
from support.vendor.models import interpreter


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("die", "ended at infer"),
        ("hang", "within 3 s"),
        ("few", "outputs, and the file names 2"),
        ("absent", "cannot import horizon_tc_ui"),
        ("old", "XJ3/J5"),
        ("nowhere", "cannot be started"),
    ],
)
def test_a_runtime_that_does_not_work_is_named_and_nothing_passes(fault: str, said: str, tmp_path: Path) -> None:
    old = tmp_path / "old" / "hobot_tc_ui"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("")
    pythons = {
        "absent": [sys.executable],
        "old": ["env", f"PYTHONPATH={old.parent}", sys.executable],
        "nowhere": ["/nowhere/python"],
    }
    chain = Chain(tmp_path, ("J6M",)).made()
    runtime = {"python": pythons.get(fault, interpreter(fault)), "timeout": 3}
    results = chain.check(code=2, defaults={"hbruntime": runtime})
    found = outcomes(only(results))
    assert found["onnx-optimized"] == "passed"
    assert (found["float-int8"], found["bc-hbm"]) == ("error", "error")
    reasons = [run.reason for run in results.facts[0].runs if run.reason is not None]
    assert any(said in text(reason) for reason in reasons), [text(reason) for reason in reasons]
    assert all(str(dict(reason.params)["stage"]) in text(reason) for reason in reasons)
