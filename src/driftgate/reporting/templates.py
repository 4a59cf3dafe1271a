"""Templates: found in the installed package or the source tree, run in a sandbox, everything printed is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.loaders import split_template_path
from jinja2.sandbox import ImmutableSandboxedEnvironment

from driftgate.errors import StorageError
from driftgate.messages.message import message

if TYPE_CHECKING:
    from importlib.abc import Traversable

Filter = Callable[..., str]


def folder() -> Traversable:
    """Where the templates are. Raises StorageError where neither the package nor a source tree has them."""
    installed = resources.files("driftgate").joinpath("_templates")
    source = Path(__file__).parents[3] / "templates"
    for place in (installed, source):
        if place.joinpath("summary.md.j2").is_file():
            return place
    raise StorageError(message("templates-missing", places=(str(installed), str(source))))


def environment(
    *, finished: Callable[[object], str], filters: Mapping[str, Filter], names: Mapping[str, object]
) -> ImmutableSandboxedEnvironment:
    """An environment for one format: `finished` makes every printed value safe for it, `names` are its globals."""
    root = folder()

    def source(name: str) -> str | None:
        file = root.joinpath(*split_template_path(name))
        return file.read_text(encoding="utf-8") if file.is_file() else None

    made = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(source),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=finished,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(filters)
    made.globals.update(names)
    return made
