"""Which language people are spoken to in: the one that is asked for, else the one of the environment."""

from __future__ import annotations

from collections.abc import Mapping

from driftgate.messages.text import CHINESE_LANGUAGE, ENGLISH_LANGUAGE

AUTO = "auto"
LANGUAGES = (ENGLISH_LANGUAGE, CHINESE_LANGUAGE)
CHOICES = (AUTO, *LANGUAGES)
#: The variable that asks for one; the action's input `lang`.
VARIABLE = "DRIFTGATE_LANG"
#: Variables of the environment that tell a language, the strongest first.
LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")


class _Asked:
    """What the command line, or the variable, asks for."""

    language = AUTO


def asked(language: str | None = None) -> str:
    """What is asked for; sets it where a language is given."""
    if language is not None:
        _Asked.language = language
    return _Asked.language


def language_of(asked: str, environment: Mapping[str, str]) -> str:
    """en or zh. `asked` is one of them, or auto: then the environment's locale tells, and English is spoken where it
    tells none of them."""
    if asked in LANGUAGES:
        return asked
    told = next((value for name in LOCALES if (value := environment.get(name, ""))), "")
    return CHINESE_LANGUAGE if told.lower().startswith(CHINESE_LANGUAGE) else ENGLISH_LANGUAGE
