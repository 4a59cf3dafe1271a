"""Releases of the vendor's compiler and of the runtime that loads what it makes, by their numbers."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?![\d_])", re.I)
#: From this generation on hbdk and HBRT are numbered alike.
ALIKE = 4


def is_newer(compiler: str, runtime: str) -> bool:
    """Whether what hbdk `compiler` made is of a later release than HBRT `runtime`; False where the two numbers do not
    tell: another generation, one before the two were numbered alike, or no number at all.

    That they are numbered alike is certain: whenever one release's output names both, they are the same (4.1.17, 4.7.5,
    4.11.11). That the older loads under the newer was seen (4.1.17 under 4.3.2). That the reverse is not to be relied
    on is said by documents, of .bc files, and was not seen; so patches, of which nothing is known, do not count.
    """
    ours, theirs = (_NUMBERS.match(version) for version in (compiler, runtime))
    if ours is None or theirs is None:
        return False
    made, loading = ((int(found[1]), int(found[2])) for found in (ours, theirs))
    return made[0] == loading[0] >= ALIKE and made > loading
