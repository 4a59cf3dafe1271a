"""The evidence of one failing link: its folder, what the vendor asks for, and what a replay needs of its sides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from driftgate.backends.onnxfile import read_onnx
from driftgate.domain.bundles import BundledLink, BundledOutputs, Role, Side, Status, Wanted, Withheld
from driftgate.domain.chain import FeedKind
from driftgate.domain.runs import BOARD, INFER
from driftgate.errors import ArtifactError, DriftgateError
from driftgate.explaining import Failure
from driftgate.masking.masks import Mask
from driftgate.messages.message import Message, message
from driftgate.numerics.comparator import OutputMap
from driftgate.plan import Job
from driftgate.sessions import Artifact, Tensor, Tensors
from driftgate.settings.compileyaml import find_compile_yamls
from driftgate.storage.archive import Content, is_safe, named, of_bytes, of_file
from driftgate.storage.evidencewriting import evidence_files
from driftgate.storage.hashing import file_digest
from driftgate.vendor.checklists import CHECKLISTS, TUNING, Keep, Kind
from driftgate.vendor.files import read_text
from driftgate.vendor.outputs import LOG, MODELS

LINK_FOLDER, VENDOR_FOLDER, REPRO_FOLDER = "link", "vendor", "repro"
#: Endings of files that are text, which is masked on its way in.
TEXTS = (".log", ".yaml", ".yml", ".json", ".csv", ".txt")
RECORDED = "recorded"


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MOST_CHARACTERS


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_THREADS


MOST_CHARACTERS, MOST_THREADS = 100, 256
#: Options without which a replay would give other numbers, the only ones that a bundle has, and what may stand there.
OPTIONS: Mapping[str, Callable[[object], bool]] = {
    "level": _is_word,
    "provider": _is_word,
    "threads": _is_count,
    "model": _is_word,
    "device": _is_word,
}


@dataclass(frozen=True, slots=True)
class Item:
    """A file on its way into a bundle. `source` is the SHA-256 of what it was made of where masking changed it."""

    path: str
    role: Role
    content: Content
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LinkEvidence:
    """All that a bundle has of one subject on one target."""

    link: BundledLink
    items: tuple[Item, ...] = ()
    withheld: tuple[Withheld, ...] = ()


@dataclass(slots=True)
class _Gathering:
    """Files found so far, and those that may not go in."""

    folder: str
    mask: Mask
    include_models: bool
    inferred: Tensors = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    withheld: dict[str, Withheld] = field(default_factory=dict)

    def put(self, name: str, role: Role, content: Content) -> str:
        """What was made here; its path in the bundle."""
        path = self._path(name)
        self.items[path] = Item(path, role, content)
        return path

    def file(self, name: str, role: Role, source: Path) -> str:
        """A file of the user's or the vendor's, as a hash only unless models are to be included; its path."""
        path = self._path(name)
        if path in self.items or path in self.withheld:
            return path
        try:
            size, sha = source.stat().st_size, file_digest(source)
            if not self.include_models:
                self.withheld[path] = Withheld(path, role, message("bundle-confidential"), size, sha)
            elif source.suffix.lower() in TEXTS:
                masked = self.mask.text(read_text(source)).encode("utf-8", "backslashreplace")
                changed = hashlib.sha256(masked).hexdigest() != sha
                self.items[path] = Item(path, role, of_bytes(masked), sha if changed else None)
            elif self._holds_secret(source):
                self.withheld[path] = Withheld(path, role, message("bundle-holds-secret"), size, sha)
            else:
                self.items[path] = Item(path, role, of_file(source))
        except (OSError, ArtifactError) as error:
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            told = message("bundle-unreadable", reason=self.mask.text(str(reason)))
            self.withheld[path] = Withheld(path, role, told)
        return path

    def _path(self, name: str) -> str:
        """Where it lies in the bundle; a name that is not safe everywhere is changed."""
        path = f"{self.folder}/{name}"
        return path if is_safe(path) else f"{self.folder}/{'/'.join(map(named, name.split('/')))}"

    def _holds_secret(self, source: Path) -> bool:
        with source.open("rb") as stream:
            return self.mask.is_held_by(stream)

    def status(self, paths: Sequence[str]) -> Status:
        if not paths:
            return Status.MISSING
        return Status.INCLUDED if all(path in self.items for path in paths) else Status.WITHHELD


def link_evidence(
    job: Job,
    failure: Failure,
    *,
    policy: str,
    mask: Mask,
    include_models: bool,
    repro: Path | None = None,
    inferred: Tensors = MappingProxyType({}),
) -> LinkEvidence:
    """What a bundle shall have of a failing link; `repro` is the folder of its smallest part where one was written,
    `inferred` what hbm_infer gave for the worst sample."""
    plan, link = job.plan, failure.link
    made = _Gathering(folder_of(plan.subject, plan.target), mask, include_models, inferred)
    evidence = failure.evidence
    if evidence is not None:
        noted = replace(evidence, link=replace(evidence.link, policy=policy))
        if noted.load_error is not None:
            noted = replace(noted, load_error=mask.text(noted.load_error))
        for name, (role, content) in evidence_files(noted, samples=failure.samples, subject=plan.subject).items():
            made.put(f"{LINK_FOLDER}/{name}", role, content)
    sides = tuple(_side(job, stage, side, made) for stage, side in ((link.reference, "a"), (link.candidate, "b")))
    keep = CHECKLISTS.get(link.candidate, ())
    wanted = tuple(_wanted(entry, job, failure, made) for entry in keep)
    if repro is not None and repro.is_dir():
        for file in sorted(repro.iterdir()):
            if file.is_file():
                made.file(f"{REPRO_FOLDER}/{file.name}", Role.REPRO, file)
    notes = failure.notes
    if not keep:
        notes = (*notes, message("keep-tuning" if link.candidate in TUNING else "keep-nothing", stage=link.candidate))
    told = BundledLink(
        subject=plan.subject,
        target=plan.target,
        folder=made.folder,
        link=link.name,
        samples=failure.samples,
        sides=sides,
        outputs=_outputs(job.outputs),
        wanted=wanted,
        notes=mask.value(notes),
    )
    return LinkEvidence(told, tuple(made.items.values()), tuple(made.withheld.values()))


def folder_of(subject: str, target: str) -> str:
    """The folder of one subject on one target within a bundle."""
    return f"{named(subject)}/{named(target)}"


def _side(job: Job, stage: str, side: str, made: _Gathering) -> Side:
    artifact = job.artifact(stage)
    digest = next(one.digest for one in job.plan.artifacts if one.stage == stage)
    options = tuple(
        (name, value)
        for name in OPTIONS
        if isinstance(value := artifact.options.get(name), (str, int, float, bool)) and value != ""
    )
    file = None if artifact.backend == RECORDED else _model_file(artifact, side, made)
    return Side(stage, artifact.backend, digest, file, options)


def _model_file(artifact: Artifact, side: str, made: _Gathering) -> str | None:
    """The path of a side's model; ONNX files are where an evidence folder has them."""
    path = artifact.path
    if path is None:
        weights = artifact.options.get("weights")
        return (
            None if not weights else made.file(f"{VENDOR_FOLDER}/{Path(str(weights)).name}", Role.MODEL, Path(weights))
        )
    if path.suffix.lower() != ".onnx":
        return made.file(f"{VENDOR_FOLDER}/{path.name}", Role.MODEL, path)
    return _onnx(path, f"{LINK_FOLDER}/model_{side}.onnx", LINK_FOLDER, made)


def _onnx(path: Path, name: str, folder: str, made: _Gathering) -> str:
    """An ONNX file with its external data beside it."""
    found = made.file(name, Role.MODEL, path)
    try:
        parts = [part for part in read_onnx(path).parts() if part[0]]
    except DriftgateError:
        parts = []  # what is wrong with it is why it failed
    for location, part in parts:
        made.file(f"{folder}/{location}", Role.MODEL, part)
    return found


def _wanted(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Wanted:
    paths = tuple(FINDERS[entry.kind](entry, job, failure, made))
    status = made.status(paths)
    what = _what(entry, job, failure)
    if status is Status.INCLUDED:
        return Wanted(what, status, paths)
    if status is Status.WITHHELD:
        return Wanted(what, status, paths, message("keep-how-include"))
    if entry.kind is not Kind.MODEL:
        return Wanted(what, status, (), message(f"keep-how-{entry.kind.value}"))
    stage = _stage_of(entry, job, failure)
    return Wanted(what, status, (), message("keep-how-model", stage=stage, ending=f"*{MODELS.get(stage, '')}"))


def _what(entry: Keep, job: Job, failure: Failure) -> Message:
    if entry.kind is not Kind.MODEL:
        return message(f"keep-{entry.kind.value}")
    return message("keep-model", stage=_stage_of(entry, job, failure))


def _stage_of(entry: Keep, job: Job, failure: Failure) -> str:
    """Of the stages that an entry may be, the link's own, else the first that the chain has."""
    own = [stage for stage in entry.stages if stage in (failure.link.reference, failure.link.candidate)]
    known = [stage for stage in entry.stages if stage in {one.name for one in job.plan.chain.stages}]
    return next(iter((*own, *known, *entry.stages)), failure.link.candidate)


def _models(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    stage = _stage_of(entry, job, failure)
    planned = {one.stage: one for one in job.artifacts}
    artifact = planned.get(stage)
    for side, own in (("a", failure.link.reference), ("b", failure.link.candidate)):
        if stage == own and artifact is not None and artifact.backend != RECORDED:
            found = _model_file(artifact, side, made)
            return () if found is None else (found,)
    path = artifact.path if artifact is not None and artifact.backend != RECORDED else None
    if path is None and job.build is not None:
        path = job.build.get(stage)
    if path is None:
        return ()
    if path.suffix.lower() == ".onnx":
        return (_onnx(path, f"{VENDOR_FOLDER}/{path.name}", VENDOR_FOLDER, made),)
    return (made.file(f"{VENDOR_FOLDER}/{path.name}", Role.VENDOR_FILE, path),)


def _log(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    path = None if job.build is None else job.build.get("log")
    return () if path is None else (made.file(f"{VENDOR_FOLDER}/{LOG}", Role.VENDOR_FILE, path),)


def _quant_config(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    """The YAML that hb_compile was given, and the file that it names."""
    if job.build is None:
        return ()
    found = []
    for path, settings in find_compile_yamls(job.build.folder, job.build.prefix).settings[:1]:
        found.append(made.file(f"{VENDOR_FOLDER}/{path.name}", Role.VENDOR_FILE, path))
        if settings.quant_config is not None:
            told = path.parent / settings.quant_config
            if told.is_file():
                found.append(made.file(f"{VENDOR_FOLDER}/{told.name}", Role.VENDOR_FILE, told))
    return found


def _input(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    return _arrays("input", _read(job, failure, FeedKind.RAW), made)


def _runtime_input(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    return _arrays("runtime_input", _read(job, failure, FeedKind.RUNTIME), made)


def _board_input(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    """What the last stage was fed; of a recording nobody knows it."""
    evidence = failure.evidence
    if evidence is None or job.artifact(failure.link.candidate).backend == RECORDED:
        return ()
    return _arrays("board_input", _first(evidence.feeds_b or evidence.feeds_a, len(failure.samples)), made)


def _infer_output(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    return _outputs_of(job, failure, made, (INFER,)) or _arrays("hbm_infer", made.inferred, made)


def _board_output(entry: Keep, job: Job, failure: Failure, made: _Gathering) -> Iterable[str]:
    """What the board gave; a recording stands for it."""
    return _outputs_of(job, failure, made, (BOARD, RECORDED))


def _outputs_of(job: Job, failure: Failure, made: _Gathering, backends: Sequence[str]) -> Iterable[str]:
    path = f"{made.folder}/{LINK_FOLDER}/outputs_b.npz"
    is_its = job.artifact(failure.link.candidate).backend in backends
    return (path,) if is_its and path in made.items else ()


Finder = Callable[[Keep, Job, Failure, _Gathering], Iterable[str]]
FINDERS: Mapping[Kind, Finder] = {
    Kind.MODEL: _models,
    Kind.LOG: _log,
    Kind.QUANT_CONFIG: _quant_config,
    Kind.INPUT: _input,
    Kind.RUNTIME_INPUT: _runtime_input,
    Kind.BOARD_INPUT: _board_input,
    Kind.INFER_OUTPUT: _infer_output,
    Kind.BOARD_OUTPUT: _board_output,
}


def _read(job: Job, failure: Failure, kind: FeedKind) -> Mapping[str, Tensor]:
    """The worst sample in one of its forms; nothing where it has none or cannot be read."""
    try:
        return job.data.read(failure.samples[0]).get(kind, {}) if failure.samples else {}
    except DriftgateError:
        return {}


def _first(feeds: Mapping[str, Tensor], count: int) -> Mapping[str, Tensor]:
    """The first of several samples that lie along axis 0."""
    if count < 2:
        return feeds
    return {name: value[: max(1, len(value) // count)] if value.ndim else value for name, value in feeds.items()}


def _arrays(kind: str, feeds: Mapping[str, Tensor], made: _Gathering) -> Iterable[str]:
    """One .npy for each input, as the vendor's tools take them."""
    return [
        made.put(f"{VENDOR_FOLDER}/{kind}_{number}_{named(name)}.npy", Role.VENDOR_DATA, _npy(value))
        for number, (name, value) in enumerate(feeds.items())
    ]


def _npy(value: Tensor) -> Content:
    def write(stream: object) -> None:
        np.lib.format.write_array(stream, np.asanyarray(value), allow_pickle=False)  # type: ignore[arg-type]

    return Content(value.nbytes + 128, write)


def _outputs(told: OutputMap) -> BundledOutputs:
    return BundledOutputs(
        names=tuple((name, tuple(others)) for name, others in told.names.items()),
        ignored=told.ignored,
        permute=tuple((name, stage, tuple(axes)) for (name, stage), axes in told.permute.items()),
    )
