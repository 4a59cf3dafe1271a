"""The Chinese catalogue as it is kept, code → sentence, and what is no word of English."""

from __future__ import annotations

import re

import catalogue

CHINESE = {str(entry.context): str(entry.string) for entry in catalogue.read() if entry.id}

#: What is called the same in Chinese: verdicts, checks, units, formats, programs and what they say of themselves.
NAMES = set(
    re.findall(
        r"\S+",
        """
    PASS FAIL PyTorch Baseline ONNX Optimized Float INT BC HBM Regression SQNR LSB dB QAT SHA MAC CPU repro
    onnx recorded onnxruntime driftgate config quant pytorch optimized float calibrated ptq hbm logits input
""",
    )
)
WORD = re.compile(r"[A-Za-z]{2,}")
