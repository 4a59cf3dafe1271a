"""What shows by its form that it must not be shown: tokens of known makers, keys, credentials, network addresses."""

from __future__ import annotations

import ipaddress
import re

from driftgate.masking.aliases import HIDDEN

ADDRESS = "(address)"

_PARTS = {
    # tokens by their makers' prefixes, and tokens that are signed JSON
    "token": r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|hf_\w{20,}|pypi-[\w-]{20,}|npm_\w{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)",
    "key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "userinfo": r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)",
    "header": r"(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}",
    "assigned": r"(?i:(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?"
    r"|(?:auth|access|refresh)[_-]?token)\w*)[\"']?\s*[:=]\s*[\"']?(?P<value>[^\s\"',;&$*(){}<>]{4,})",
    "option": r"(?i:\bsshpass\s+-p\s*|--?(?:password|token|api-key)[ =])[\"']?(?P<given>[^\s\"';&$*(){}<>]{3,})",
    "query": r"[?&](?i:token|sig|signature|key|x-amz-[\w-]+)=(?P<argument>[^\s&\"']{6,})",
    "mail": r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}\b",
    "mac": r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])",
    "v4": r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\w)",
    "v6": r"(?<![\w:.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{3,39}(?:%\w+)?(?![\w:])",
}
_ANY = re.compile("|".join(f"(?P<{name}>{part})" for name, part in _PARTS.items()))
_VERSION = re.compile(r"(?i)(?:version|ver|release)\W{0,3}$|[vV=]$")
#: What an assignment may say without telling anything.
_HARMLESS = frozenset({"none", "null", "true", "false", "absent", "given", "unset", "empty"})


def without_patterns(text: str) -> str:
    """The text with everything masked that looks like a token, a key, a password or an address of a machine."""
    return _ANY.sub(_masked, text)


def _masked(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    whole = found[0]
    for name in ("value", "argument", "given"):
        if found[name] is not None:
            said: str = found[name]
            shown = said if said.lower() in _HARMLESS else HIDDEN
            return whole[: len(whole) - len(said)] + shown
    if kind == "header":
        return f"{whole.split()[0]} {HIDDEN}"
    if kind in ("v4", "v6"):
        return _address(found)
    return ADDRESS if kind in ("mac", "mail") else HIDDEN


def _address(found: re.Match[str]) -> str:
    """An address of a machine; those that every machine has, and versions of four numbers, are left."""
    whole = found[0]
    try:
        address = ipaddress.ip_address(whole.partition("%")[0])
    except ValueError:
        return whole
    if address.is_loopback or address.is_unspecified or _VERSION.search(found.string[: found.start()][-16:]):
        return whole
    if address.version == 6 and not any(one.isdigit() for one in whole):
        return whole  # names of C++ that are spelt with a to f
    return ADDRESS
