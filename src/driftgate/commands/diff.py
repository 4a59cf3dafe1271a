"""`driftgate diff`: two artifacts side by side on the same inputs."""

from __future__ import annotations

from pathlib import Path

import click

from driftgate.aside import Aside
from driftgate.backends.registry import backend
from driftgate.commands.checking import REPRO, STALE, captured, deliver
from driftgate.commands.effort import effort, effort_options
from driftgate.commands.speaking import LogText, guarded, progress, stopped_while_waiting, verbose_option
from driftgate.domain.chain import Chain, Check, CheckKind, LinkKind, Stage
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Policy
from driftgate.domain.legs import divide
from driftgate.domain.plan import Plan, PlannedArtifact
from driftgate.domain.samples import Origin
from driftgate.errors import UsageError
from driftgate.investigating import Effort, can_tap, look_into, with_found, worst_samples
from driftgate.judgement.judge import judge
from driftgate.messages.message import message
from driftgate.numerics.comparator import OutputMap
from driftgate.plan import Job
from driftgate.sessions import Artifact
from driftgate.settings.artifacts import backend_of
from driftgate.storage.folder import remove_all, remove_tree
from driftgate.storage.sampledata import SampleData
from driftgate.storage.tensorfiles import open_source

SLUG = "diff"


@click.command("diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--inputs", required=True, type=click.Path(path_type=Path), help="Feeds: stacked .npz or a folder.")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in LinkKind]),
    default=LinkKind.EQUIVALENT.value,
    help="What may differ.",
)
@click.option("--output", "outputs", multiple=True, metavar="A=B", help="Output A of the first is B of the second.")
@click.option(
    "--level",
    type=click.Choice(["disabled", "basic", "extended", "all"]),
    default="disabled",
    help="ONNX Runtime's graph optimisation.",
)
@click.option("--threads", type=click.IntRange(min=1), default=2, help="Threads inside one operator.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the reports; none are kept without it.")
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON instead of the table.")
@click.option("--nodes", is_flag=True, help="Compare node by node as well, whether the outputs agree or not.")
@effort_options
@verbose_option
@guarded
def command(
    a: Path,
    b: Path,
    inputs: Path,
    kind: str,
    outputs: tuple[str, ...],
    level: str,
    threads: int,
    out: Path | None,
    as_json: bool,
    nodes: bool,
    memory: str,
    node_samples: int,
    repro: bool,
    verbose: bool,
) -> int:
    """Compare the outputs of A and B: ONNX files, TorchScript files or recordings."""
    log_text = LogText(verbose=verbose)
    if out is not None:
        remove_all(out, STALE)
        remove_tree(out / REPRO)
    absent = tuple(str(path) for path in (a, b, inputs) if not path.exists())
    if absent:
        raise UsageError(message("paths-absent", paths=absent))
    job = _job(a, b, inputs, kind=LinkKind(kind), names=_names(outputs), options={"level": level, "threads": threads})
    with stopped_while_waiting() as breakable:
        wanted = effort(memory, node_samples, repro=repro) if nodes else None
        asides = {} if wanted is None else {job.plan.key: wanted.aside()}
        facts, interrupted = captured([job], breakable, asides)
        policies = {job.plan.subject: Policy()}
        if wanted is not None and not interrupted:
            with breakable():
                facts = (_with_nodes(job, facts[0], wanted, out, asides[job.plan.key]),)
        return deliver(facts, policies, out, as_json=as_json, log_text=log_text, interrupted=interrupted).code


def _with_nodes(job: Job, facts: Facts, wanted: Effort, out: Path | None, aside: Aside) -> Facts:
    (link,) = job.plan.links
    samples = worst_samples(facts, judge(facts, Policy()), link, wanted.samples)
    if not can_tap(job, link):
        raise UsageError(message("nodes-untappable", stages=(link.reference, link.candidate)))
    with progress(message("progress-nodes", link=link.name)) as advance:
        inquiry = look_into(job, link, samples, wanted, aside=aside, progress=advance)
    found = inquiry.found if out is None or not wanted.repro else inquiry.write_repro(out / REPRO)
    return with_found(facts, found)


def _names(outputs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    wrong = tuple(pair for pair in outputs if pair.count("=") != 1)
    if wrong:
        raise UsageError(message("output-pair", pairs=wrong))
    return {name: (other,) for name, _, other in (pair.partition("=") for pair in outputs)}


def _job(
    a: Path, b: Path, inputs: Path, *, kind: LinkKind, names: dict[str, tuple[str, ...]], options: dict[str, object]
) -> Job:
    first, second = (a.stem, b.stem) if a.stem != b.stem else ("a", "b")
    chain = Chain(
        name=SLUG,
        stages=(Stage(first, 1), Stage(second, 1, kind=kind)),
        checks=(Check(SLUG, f"{first} ↔ {second}", CheckKind.LINKS, (second,)),),
    )
    artifacts = tuple(
        Artifact(stage, backend_of(str(path)), path.resolve(), options) for stage, path in ((first, a), (second, b))
    )
    data = SampleData(open_source(inputs), None)
    plan = Plan(
        subject=f"{a.name} ↔ {b.name}",
        target="-",
        chain=chain,
        artifacts=tuple(
            PlannedArtifact(artifact.stage, artifact.backend, backend(artifact.backend).digest(artifact))
            for artifact in artifacts
        ),
        samples=data.sample_set(inputs.stem, origin=Origin.REAL, block=16),
    )
    return Job(divide(plan, 1), artifacts, data, None, {}, OutputMap(names=names), {})
