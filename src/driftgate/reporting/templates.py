"""Templates, ours and the user's: run in a sandbox, everything printed is escaped, what is wrong has a line."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.loaders import split_template_path
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from driftgate.errors import ConfigError, StorageError
from driftgate.messages.message import message

if TYPE_CHECKING:
    from importlib.abc import Traversable

Filter = Callable[..., str]
Rendering = Callable[..., Iterator[str]]

SOURCE_BYTES = 256 * 1024  # a user's template is a page of text
#: Jinja's own filters that print a value as HTML or unescaped, or never the same twice.
REFUSED = ("safe", "e", "escape", "forceescape", "urlize", "xmlattr", "tojson", "striptags", "random")
#: What an expression in a template can raise.
FAULTS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


def folder() -> Traversable:
    """Where the templates are. Raises StorageError where neither the package nor a source tree has them."""
    installed = resources.files("driftgate").joinpath("_templates")
    source = Path(__file__).parents[3] / "templates"
    for place in (installed, source):
        if place.joinpath("summary.md.j2").is_file():
            return place
    raise StorageError(message("templates-missing", places=(str(installed), str(source))))


class _Joining(NodeTransformer):
    """`a ~ b` becomes `[a, b] | join`."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802, the name is Jinja's
        self.generic_visit(node)
        together = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(together, "join", [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    """Joins texts by our own rule: Jinja would escape the parts for HTML, whatever the format is."""

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = _Joining().visit(super()._parse(source, name, filename))
        return parsed


def environment(
    *, finished: Callable[[object], str], filters: Mapping[str, Filter], names: Mapping[str, object]
) -> ImmutableSandboxedEnvironment:
    """An environment for one format: `finished` makes every printed value safe for it, `names` are its globals."""
    root = folder()

    def source(name: str) -> str | None:
        file = root.joinpath(*split_template_path(name))
        return file.read_text(encoding="utf-8") if file.is_file() else None

    def join(values: Iterable[object], between: str = "") -> str:
        parts = tuple(values)
        if all(isinstance(part, (str, int, float)) and not hasattr(part, "__html__") for part in parts):
            return between.join(map(str, parts))
        return Markup(finished(between).join(map(finished, parts)))  # noqa: S704, each part is escaped

    made = _Environment(
        loader=FunctionLoader(source),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=finished,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in REFUSED:
        del made.filters[name]
    made.filters.update({**filters, "join": join})
    made.globals.update(names)
    return made


def rendering(made: ImmutableSandboxedEnvironment, name: str, own: Path | None) -> Rendering:
    """What renders our template of that name, or the user's `own` file, which may extend ours, part by part.

    Raises ConfigError, also while it renders: `own` cannot be read, is wrong at a line, or writes nothing.
    """
    if own is None:
        return made.get_template(name).generate
    source = _source(own)
    with _explained(own):
        template = Template.from_code(made, made.compile(source, own.name, str(own)), made.make_globals(None))

    def render(**context: object) -> Iterator[str]:
        written = False
        with _explained(own):
            for part in template.generate(**context):
                written = written or bool(part.strip())
                yield part
        if not written:
            raise ConfigError(message("template-empty", path=str(own)))

    return render


def _source(own: Path) -> str:
    try:
        content = own.read_bytes()
        if len(content) > SOURCE_BYTES:
            raise ConfigError(message("template-long", path=str(own), limit_bytes=SOURCE_BYTES))
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(message("template-absent", path=str(own), reason=reason)) from error


@contextmanager
def _explained(own: Path) -> Iterator[None]:
    try:
        yield
    except FAULTS as error:
        reason = getattr(error, "message", None) or str(error) or type(error).__name__
        raise ConfigError(
            message("template-wrong", path=str(own), line=_line(error, own), reason=str(reason))
        ) from error


def _line(error: BaseException, own: Path) -> int:
    """The last line of the user's template that was at work; Jinja puts its lines into the traceback."""
    if isinstance(error, TemplateSyntaxError) and error.filename == str(own):
        return error.lineno
    walked = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in walked if frame.f_code.co_filename == str(own)]
    return lines[-1] if lines else 1
