"""Writes .github/workflows/four-segment-ghes.yml: the reusable workflow for servers without artifacts of version 4.

Run it after a change of four-segment.yml; a test says when it was forgotten. A step of the rewriting that finds nothing
to rewrite is an error.
"""

from __future__ import annotations

import re
from pathlib import Path

WORKFLOWS = Path(__file__).parents[1] / ".github" / "workflows"
SOURCE, TARGET = WORKFLOWS / "four-segment.yml", WORKFLOWS / "four-segment-ghes.yml"

#: Pattern → what stands there instead.
REWRITTEN = (
    (
        r"(?s)\A.*?(?=name: driftgate four segments\n)",
        "# Made by tools/enterprise_workflow.py from four-segment.yml, for GitHub Enterprise Server and its like:\n"
        "# artifacts of version 3, and none of github.com's newer words. See docs/runners.md.\n",
    ),
    (r"name: driftgate four segments\n", "name: driftgate four segments on a server of one's own\n"),
    (r"uses: \$/(\w+)\n", r"uses: driftgate/driftgate/\1@v0 # zizmor: ignore[self-repository] unknown there\n"),
    (r"(?m)^ +queue: max\n", ""),
    (
        r"uses: actions/upload-artifact@\S+ # v\S+\n",
        "uses: actions/upload-artifact@c24449f33cd45d4826c6702db7e49f7cdb9b551d # v3.2.1-node20\n",
    ),
    (
        r"uses: actions/download-artifact@\S+ # v\S+\n",
        "uses: actions/download-artifact@ad191675b41f6a5b46da9a048cb6893812da158b # v3.1.0-node20\n",
    ),
    # files of an artifact take the place of older ones there anyway
    (r"(?m)^ +(overwrite: true|compression-level: 1)\n", ""),
    # without a name all artifacts come, each in a folder of its name
    (r"(?m)^ +pattern: driftgate-shard-\*\n", ""),
)


def rewritten(text: str) -> str:
    """The workflow for such a server. Raises ValueError where something is not there to be rewritten."""
    for pattern, instead in REWRITTEN:
        text, count = re.subn(pattern, instead, text)
        if not count:
            raise ValueError(f"not in {SOURCE.name}: {pattern}")
    return text


if __name__ == "__main__":
    TARGET.write_text(rewritten(SOURCE.read_text("utf-8")), "utf-8")
