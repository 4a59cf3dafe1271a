"""Digests of frozen data: SHA-256 over a canonical JSON form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum


def plain(value: object) -> object:
    """Frozen data as JSON values; dataclasses become objects, tuples arrays, enums their values."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def lean(value: object) -> object:
    """The same without the fields that have their default value, so that a field added later changes no digest
    of data that do not use it."""
    if is_dataclass(value) and not isinstance(value, (type, Enum)):
        return {
            field.name: lean(getattr(value, field.name))
            for field in fields(value)
            if field.default is MISSING or getattr(value, field.name) != field.default
        }
    if isinstance(value, (tuple, list)):
        return [lean(item) for item in value]
    return plain(value)


def digest(value: object) -> str:
    """The SHA-256 of a value's canonical form, in hexadecimal."""
    canonical = json.dumps(lean(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
