"""The host keys that are trusted, read from a file of OpenSSH's known_hosts form."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

STANDARD_PORT = 22
REVOKED = "@revoked"
HASHED = "|1|"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line: the hosts it speaks of, the kind of the key, and the key as it goes over the wire."""

    hosts: str
    kind: str
    blob: bytes
    is_revoked: bool = False

    def speaks_of(self, name: str) -> bool:
        """Whether a host, as `entry_name` gives it, is among its hosts."""
        if self.hosts.startswith(HASHED):
            return _is_hash_of(self.hosts, name)
        patterns = [_literal(pattern) for pattern in self.hosts.lower().split(",")]
        refused = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        if any(fnmatchcase(name, pattern) for pattern in refused):
            return False
        return any(fnmatchcase(name, pattern) for pattern in patterns)


def entry_name(address: str, port: int) -> str:
    """What a host is called in the file."""
    return address.lower() if port == STANDARD_PORT else f"[{address.lower()}]:{port}"


def parse(text: str) -> tuple[KnownKey, ...]:
    """The keys of a file; lines that are no key, and those of certificate authorities, are left out."""
    return tuple(key for line in text.splitlines() if (key := _key_of(line)) is not None)


def keys_of(known: Iterable[KnownKey], address: str, port: int) -> tuple[KnownKey, ...]:
    """Those that speak of one host."""
    name = entry_name(address, port)
    return tuple(key for key in known if key.speaks_of(name))


def fingerprint(blob: bytes) -> str:
    """A key as `ssh-keygen -l` shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _key_of(line: str) -> KnownKey | None:
    fields = line.split()
    marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
    if len(fields) < 3 or fields[0].startswith("#") or marker not in ("", REVOKED):
        return None
    try:
        blob = base64.b64decode(fields[2], validate=True)
    except binascii.Error:
        return None
    return KnownKey(fields[0], fields[1], blob, is_revoked=marker == REVOKED)


def _literal(pattern: str) -> str:
    """The brackets of `[host]:port` are no set of characters."""
    return pattern.replace("[", "[[]")


def _is_hash_of(entry: str, name: str) -> bool:
    try:
        salt, wanted = (base64.b64decode(part) for part in entry[len(HASHED) :].split("|"))
    except ValueError:
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), wanted)
