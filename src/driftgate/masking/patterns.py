"""What shows by its form that it must not be shown: tokens of known makers, keys, credentials, network addresses."""

from __future__ import annotations

import ipaddress
import re

from driftgate.masking.aliases import HIDDEN

ADDRESS = "(address)"

_V4 = r"(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\w)"
_END = r"-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
_QUOTE = r"[\"']?"
#: Between the words of a command: blanks, or what stands between the entries of a list in JSON or YAML.
_NEXT = r"(?:[ =]|[\"']?,?\s+(?:-\s+)?)"
_SECRETS = (
    r"(?i:(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?"
    r"|\b\w+[_-]token)\w*)"
)
_SCHEMES = r"(?i:bearer|basic|token)"

#: Kind → its pattern; a named group within it is the part that is hidden, the rest stays.
_PARTS = {
    # by their makers' prefixes, and signed JSON
    "token": (
        r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
        r"|hf_\w{20,}|pypi-[\w-]{20,}|npm_\w{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    ),
    # whole, cut off at its end, or cut off at its beginning
    "key": (
        rf"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:{_END}|\Z)"
        rf"|(?m:^[A-Za-z0-9+/=]{{1,200}}\r?\n){{1,99}}{_END}"
    ),
    "userinfo": r"(?<=://)(?:[^\s/@:]*:[^\s/@]+|[^\s/@:]{16,})(?=@)",
    "authorization": (
        rf"(?i:\bauthorization{_QUOTE}\s*[:=]\s*{_QUOTE}(?:[a-z-]+\s+)?)"
        r"(?P<credential>(?!(?i:[a-z-]+)\s+\*)[^\s\"',;&*]{4,})"
    ),
    "header": r"(?i:\bbearer\s+)[\w.~+/=-]{8,}|(?i:\bbasic\s+)(?=[\w.~+/-]*[\d=])[\w.~+/=-]{8,}",
    "assigned": (
        rf"{_SECRETS}{_QUOTE}\s*[:=]\s*(?:"
        r"[\"'](?![$*{(<])(?P<quoted>[^\"'\n]{4,})(?=[\"'])"
        rf"|{_QUOTE}(?:{_SCHEMES}\s+)?(?P<value>(?![$*{{(<]|{_SCHEMES}\s)[^\s\"',;]*[^\s\"',;(){{}}<>]{{3}}[^\s\"',;]*))"
    ),
    "option": (
        rf"(?i:\bsshpass[\"']?[,\s]+(?:-\s+)?{_QUOTE}-p[\"']?[,\s]*(?:-\s+)?|--?(?:password|token|api-key){_NEXT}){_QUOTE}"
        r"(?P<given>[^\s\"';&$*(){}<>-][^\s\"';&$*(){}<>]{2,})"
    ),
    "query": r"[?&](?i:token|sig|signature|key|x-amz-[\w-]+)=(?P<argument>[^\s&\"']{6,})",
    "mail": r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}\b",
    "mac": r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])",
    # of four numbers, which are no address
    "version": rf"(?:(?i:\b(?:version|ver|release))\W{{0,3}}|==[ ]?){_V4}",
    "v6": (
        r"(?<![\w:.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{2,39}"
        rf"(?:{_V4}|(?:%\w+)?(?![\w:]|\.\d))"
    ),
    "v4": rf"(?<![\w.-]){_V4}",
}
#: What tells a secret in bytes that are no text.
_IN_BYTES = re.compile(rf"{_PARTS['token']}|-----BEGIN [A-Z ]*PRIVATE KEY".encode())
_HIDDEN_PARTS = ("value", "quoted", "argument", "given", "credential")
_ANY = re.compile("|".join(f"(?P<{kind}>{part})" for kind, part in _PARTS.items()))
#: What an assignment may say without telling anything.
_HARMLESS = frozenset({"none", "null", "true", "false", "absent", "given", "unset", "empty"})
#: Where machines are; elsewhere what looks like an address is a name of C++ or a slice of Python.
_NETWORKS = tuple(map(ipaddress.ip_network, ("2000::/3", "fc00::/7", "fe80::/10", "ff00::/8", "::ffff:0:0/96")))


def without_patterns(text: str) -> str:
    """The text with everything masked that looks like a token, a key, a password or an address of a machine."""
    while (made := _ANY.sub(_masked, text)) != text:
        text = made
    return text


def has_token(content: bytes) -> bool:
    """Whether a token or a private key stands in bytes that cannot be rewritten."""
    return _IN_BYTES.search(content) is not None


def _masked(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    whole = found[0]
    for name in _HIDDEN_PARTS:
        if found[name] is not None:
            said: str = found[name]
            shown = said if said.lower() in _HARMLESS else HIDDEN
            return whole[: len(whole) - len(said)] + shown
    if kind == "header":
        return f"{whole.split()[0]} {HIDDEN}"
    if kind in ("v4", "v6"):
        return _address(whole)
    if kind == "version":
        return whole
    return ADDRESS if kind in ("mac", "mail") else HIDDEN


def _address(whole: str) -> str:
    """An address of a machine; those that every machine has are left."""
    try:
        address = ipaddress.ip_address(whole.partition("%")[0])
    except ValueError:
        return whole
    if address.is_loopback or address.is_unspecified:
        return whole
    return ADDRESS if address.version == 4 or any(address in network for network in _NETWORKS) else whole
