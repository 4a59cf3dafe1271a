"""`driftgate init`: a commented driftgate.yaml for a folder in which hb_compile has worked."""

from __future__ import annotations

from pathlib import Path

import click

from driftgate.commands.speaking import LogText, guarded, log, say, stderr, stdout, verbose_option
from driftgate.errors import UsageError
from driftgate.initialising.survey import survey
from driftgate.initialising.writing import lines, warnings
from driftgate.messages.message import message
from driftgate.settings.compileyaml import read_compile_yaml
from driftgate.storage.atomic import write_bytes
from driftgate.vendor.outputs import MODELS


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--yaml",
    "settings",
    type=click.Path(path_type=Path),
    help="hb_compile's YAML of this build, where it does not lie in the folder or beside it.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The file to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@verbose_option
@guarded
def command(folder: Path, settings: Path | None, out: Path, force: bool, verbose: bool) -> int:
    """Find the vendor's files in FOLDER by their names and write a configuration to start from.

    hb_compile's YAML and its log tell the platform, how runtime samples follow from raw ones, and where the
    calibration data lie; where they contradict each other, the file and stderr say so. Sibling folders that differ by
    a platform's name are targets of one subject.
    """
    LogText(verbose=verbose)
    if not folder.is_dir():
        raise UsageError(message("init-no-folder", folder=str(folder)))
    if out.exists() and not force:
        raise UsageError(message("init-exists", path=str(out)))
    found = survey(folder, None if settings is None else (settings, read_compile_yaml(settings)))
    if not found:
        raise UsageError(message("init-nothing", folder=str(folder), endings=tuple(MODELS.values())))
    write_bytes(out, "\n".join(lines(found, out.resolve().parent)).encode() + b"\n")
    for warning in dict.fromkeys(warning for subject in found for warning in warnings(subject)):
        log(warning)
        stderr().print(f"driftgate: {say(warning)}", markup=False, style="yellow")
    stdout().print(say(message("init-written", path=str(out), subjects=tuple(one.name for one in found))), markup=False)
    return 0
