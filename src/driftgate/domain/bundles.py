"""What an evidence bundle says of itself: its files, what is withheld or missing, and what a replay needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from driftgate.domain.judgement import Policy
from driftgate.messages.message import Message


class Role(str, Enum):
    """What a file is for."""

    FACTS = "facts"
    REPORT = "report"
    LOG = "log"
    CONFIG = "config"
    VERSIONS = "versions"
    LINK = "link"  # an evidence folder's file
    LAYERS = "layers"
    CALIBRATION = "calibration"
    REPRO = "repro"
    VENDOR_DATA = "vendor-data"  # on the vendor's list, made of samples and outputs
    VENDOR_FILE = "vendor-file"  # on the vendor's list, made by its tools
    MODEL = "model"
    README = "readme"


#: What goes first where a bundle would be too large; everything that is not in it stays.
SACRIFICE = (
    Role.CALIBRATION,
    Role.LAYERS,
    Role.REPRO,
    Role.VENDOR_FILE,
    Role.MODEL,
    Role.VENDOR_DATA,
    Role.REPORT,
    Role.LINK,
)


class Status(str, Enum):
    """What has become of an entry of the vendor's list."""

    INCLUDED = "included"
    WITHHELD = "withheld"  # it is there; its hash is in the bundle
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A file in the bundle, with the SHA-256 of its content there; `source` is that of the file it was made of where
    masking has changed it."""

    path: str
    bytes: int
    sha256: str
    role: Role
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Withheld:
    """A file that would be in the bundle under this path, and why it is not: known by size and SHA-256 of its content,
    which are None where it could not be read, or was never written."""

    path: str
    role: Role
    reason: Message
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entry of the list of files that the vendor asks for: the files that it is, by their paths in the bundle or
    what they would be, and how to get what is not there."""

    what: Message
    status: Status
    paths: tuple[str, ...] = ()
    how: Message | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a failing link: the stage, what ran it and the artifact's digest; `file` is its path in the bundle
    where it is there, or what it would be. `options` are (name, value) pairs that its backend needs."""

    stage: str
    backend: str
    digest: str
    file: str | None = None
    options: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class BundledOutputs:
    """What the configuration says of outputs; see OutputMap."""

    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ignored: tuple[str, ...] = ()
    permute: tuple[tuple[str, str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class BundledLink:
    """The evidence of one subject's failing link: `folder` holds its evidence folder `link`, and what the vendor asks
    for in `vendor`. Without a failing link, or where it could not be run again, `notes` say why."""

    subject: str
    target: str
    folder: str
    link: str | None = None
    samples: tuple[str, ...] = ()
    sides: tuple[Side, ...] = ()
    outputs: BundledOutputs = field(default_factory=BundledOutputs)
    wanted: tuple[Wanted, ...] = ()
    notes: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class BundlePolicy:
    """The policy that a subject was judged by."""

    subject: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class BundleManifest:
    """MANIFEST.json, which lists every file but itself. What was found stands in the facts, which are listed with
    their digest, and nowhere else."""

    tool: str
    models_included: bool
    budget_bytes: int
    replay: tuple[str, ...]
    links: tuple[BundledLink, ...]
    policies: tuple[BundlePolicy, ...]
    files: tuple[BundledFile, ...]
    withheld: tuple[Withheld, ...] = ()
    sacrificed: tuple[Role, ...] = ()  # roles of which files were left out for the size
