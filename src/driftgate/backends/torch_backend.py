"""Runs PyTorch modules and TorchScript in a worker, so that the user's stack and ours never meet."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.domain.digest import digest
from driftgate.errors import ArtifactError, ConfigError
from driftgate.messages.message import message
from driftgate.sessions import Artifact

SCRIPT = WORKERS / "torch_worker.py"
DEFAULT_DEVICE = "cpu"
DEFAULT_SECONDS = 600.0
DEFAULT_THREADS = 1

_SCRIPT_MEMBERS = ("constants.pkl", "code/")
_PICKLE_MEMBER = "data.pkl"


class TorchBackend:
    """The artifact is a TorchScript file (`path`), or what a function of the user returns.

    Options: `python` (command of the interpreter), `load` ("module:function", called without arguments, returns
    the nn.Module), `weights` (file with its state dict), `search_path` (folders to import from), `device`,
    `threads`, `timeout` (seconds an answer may take).
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the TorchScript file; or over the name of the function, the weights, and the Python files
        of its top-level package as far as they lie on the search path."""
        _check(artifact)
        if artifact.path is not None:
            return files_digest([("", artifact.path)])
        return digest((str(artifact.options["load"]), files_digest(_sources(artifact.options))))

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> ForeignSession:
        """Start the worker and load the module; taps are names of modules (not in TorchScript)."""
        _check(artifact)
        options = artifact.options
        weights = options.get("weights")
        if artifact.path is not None:
            _check_script(artifact.path)
        if weights and not Path(weights).is_file():
            raise ArtifactError(message("artifact-missing", path=str(weights)))
        request = {
            "path": None if artifact.path is None else str(artifact.path.absolute()),
            "load": options.get("load"),
            "weights": str(Path(weights).absolute()) if weights else None,
            "search_path": [str(Path(folder).absolute()) for folder in options.get("search_path", ())],
            "device": str(options.get("device", DEFAULT_DEVICE)),
            "threads": int(options.get("threads", DEFAULT_THREADS)),
        }
        return open_foreign(
            WorkerCall(
                stage=artifact.stage,
                interpreter=tuple(options.get("python", (sys.executable,))),
                script=SCRIPT,
                request=request,
                seconds=float(options.get("timeout", DEFAULT_SECONDS)),
                taps=tuple(taps),
            )
        )


def _check(artifact: Artifact) -> None:
    load, weights = artifact.options.get("load"), artifact.options.get("weights")
    if bool(load) == (artifact.path is not None):
        raise ConfigError(message("torch-either", stage=artifact.stage))
    if weights and not load:
        raise ConfigError(message("torch-weights-alone", stage=artifact.stage))
    module, _, function = str(load or "a:b").partition(":")
    if not module or not function:
        raise ConfigError(message("torch-load-form", stage=artifact.stage, load=str(load)))


def _check_script(path: Path) -> None:
    """Tell a plain pickle of torch.save from a TorchScript file. Raises ArtifactError."""
    if not path.is_file():
        raise ArtifactError(message("artifact-missing", path=str(path)))
    try:
        with zipfile.ZipFile(path) as archive:
            # every member lies in one folder, which has the name that the file had when it was saved
            members = {name.partition("/")[2] for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise ArtifactError(message("torchscript-no-zip", path=str(path))) from error
    if any(member.startswith(_SCRIPT_MEMBERS) for member in members):
        return
    code = "torchscript-state-dict" if _PICKLE_MEMBER in members else "torchscript-no-zip"
    raise ArtifactError(message(code, path=str(path)))


def _sources(options: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    if options.get("weights"):
        yield "weights", Path(options["weights"])
    package = str(options["load"]).partition(":")[0].partition(".")[0]
    for number, folder in enumerate(Path(entry) for entry in options.get("search_path", ())):
        for file in (folder / f"{package}.py", *sorted((folder / package).rglob("*.py"))):
            if file.is_file():
                yield f"{number}/{file.relative_to(folder).as_posix()}", file
