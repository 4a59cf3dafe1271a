"""The READMEs of a bundle, in English and in Chinese: ready to go with a support ticket."""

from __future__ import annotations

from driftgate.domain.bundles import BundleManifest
from driftgate.domain.results import Results
from driftgate.messages.text import CHINESE_LANGUAGE, ENGLISH_LANGUAGE, in_language
from driftgate.reporting.markdown import github
from driftgate.reporting.templates import rendering
from driftgate.reporting.view.bundle import readme

TEMPLATE = "bundle.md.j2"
#: File → its language.
LANGUAGES = {"README.md": ENGLISH_LANGUAGE, "README.zh-CN.md": CHINESE_LANGUAGE}


def readmes(results: Results, manifest: BundleManifest) -> dict[str, str]:
    """The text of each README by its name."""
    shown = readme(results, manifest)
    made = {}
    for name, language in LANGUAGES.items():
        with in_language(language):
            made[name] = "".join(rendering(github(), TEMPLATE, None)(readme=shown, details=False))
    return made
