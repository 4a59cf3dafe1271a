"""Maintainers only: a picture of a Markdown report as GitHub shows it. Needs cmarkgfm and chromium.

python tools/picture.py demo-out/comment.md docs/images/failing-comment.png [width height]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import cmarkgfm  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]

STYLE = """
body{font:16px/1.5 -apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC",Helvetica,Arial,sans-serif;
     color:#1f2328;margin:24px}
table{border-collapse:collapse;margin-bottom:16px} td,th{border:1px solid #d1d9e0;padding:6px 13px}
tr:nth-child(2n){background:#f6f8fa} h3,h4{border-bottom:1px solid #d1d9e0;padding-bottom:.3em}
code{background:#eff1f3;border-radius:6px;padding:.2em .4em;font:85% ui-monospace,"DejaVu Sans Mono",monospace}
"""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")


def picture(source: Path, target: Path, *, width: int, height: int) -> None:
    """Render `source` and write a PNG of the top of the page, width × height pixels."""
    body = cmarkgfm.github_flavored_markdown_to_html(source.read_text(), options=Options.CMARK_OPT_UNSAFE)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(f"<meta charset=utf-8><style>{STYLE}</style>{body}", encoding="utf-8")
        command = ["chromium", *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        subprocess.run(
            [*command, f"--screenshot={target.resolve()}", page.as_uri()],
            check=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )


if __name__ == "__main__":
    size = [int(number) for number in sys.argv[3:5]] or [1000, 700]
    picture(Path(sys.argv[1]), Path(sys.argv[2]), width=size[0], height=size[1])
