"""The `build` entry of the artifacts: the folder in which hb_compile has worked, its files found by their prefix."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from driftgate.domain.toolchain.build import CompiledFiles
from driftgate.sessions import Artifact
from driftgate.settings.artifacts import BY_SUFFIX, TARGET, AnyArtifact, HbRuntimeArtifact, OnnxRuntimeArtifact
from driftgate.settings.section import Section
from driftgate.vendor.outputs import find_outputs

#: Stages for which the node table of the build has a cosine.
WITH_NODE_TABLE = frozenset({"calibrated", "ptq", "quantized"})


class BuildSettings(Section):
    """Where hb_compile left its files. `{target}` stands for the platform."""

    from_: str = Field(alias="from", description="the working_dir; {target} in it is the platform, as in J6M")
    prefix: str | None = Field(default=None, description="output_model_file_prefix, where the folder has several")

    def files(self, root: Path, target: str) -> CompiledFiles:
        """What lies there. Raises ArtifactError."""
        return find_outputs(root / self.from_.replace(TARGET, target), self.prefix)


def made_artifacts(files: CompiledFiles, known: dict[str, AnyArtifact], *, threads: int) -> list[Artifact]:
    """The build's models as artifacts, but for stages that are given already."""
    table = dict(files.reports).get("node_info")
    found = []
    for stage, path in files.models:
        if stage in known:
            continue
        node_table = table if stage in WITH_NODE_TABLE else None
        kind = HbRuntimeArtifact if BY_SUFFIX[path.suffix] == "hbruntime" else OnnxRuntimeArtifact
        section = kind.model_validate({"path": path, "node-table": node_table})
        found.append(section.artifact(stage, root=Path(), threads=threads, custom_ops=()))
    return found
