"""The JUnit documents against Jenkins' own schema, which pytest ships in its source distribution."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from lxml import etree

from driftgate.domain.results import Results
from driftgate.reporting.junit import junit
from support.field.wheels import cache_folder
from support.results import crashed, error, failing, healthy, hostile, segment_two, several

SOURCE = "pytest==9.2.0"
MEMBER = "testing/example_scripts/junit-10.xsd"


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    """The schema, downloaded once into the cache of the field tests."""
    file = cache_folder() / "junit-10.xsd"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=file.parent) as folder:
            whole = Path(folder) / file.name
            whole.write_bytes(downloaded(Path(folder)))
            whole.replace(file)
    return etree.XMLSchema(etree.parse(str(file)))


def downloaded(folder: Path) -> bytes:
    """The schema out of pytest's source distribution."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pytest"]
    subprocess.run([*command, "--dest", str(folder), SOURCE], stdin=subprocess.DEVNULL, timeout=300, check=True)
    (archive,) = folder.glob("pytest-*.tar.gz")
    with tarfile.open(archive) as opened:
        (member,) = (name for name in opened.getnames() if name.endswith(MEMBER))
        source = opened.extractfile(member)
        assert source is not None
        return source.read()


@pytest.mark.parametrize(
    "made",
    [healthy(), failing(), error(), segment_two(), crashed(), hostile(), several()],
    ids=["healthy", "failing", "error", "segment two", "crashed", "hostile", "several"],
)
def test_jenkins_takes_the_document(schema: etree.XMLSchema, made: Results) -> None:
    schema.assertValid(etree.fromstring(junit(made)))


def test_the_schema_refuses_what_junit_xml_writes_by_itself(schema: etree.XMLSchema) -> None:
    root = etree.fromstring(junit(healthy()))
    root[0].set("disabled", "0")
    assert not schema.validate(root)
