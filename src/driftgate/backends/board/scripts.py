"""Lines for the board's `sh`, which needs `mkdir`, `cat` and `rm` beside it and nothing else.

What a login shell prints of its own comes before the token that each of them prints first.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

#: On Linux it tells one boot from the next; QNX has no such file.
BOOT = "/proc/sys/kernel/random/boot_id"


def quoted(word: str) -> str:
    """A word for `sh`."""
    return shlex.quote(word)


def told(token: str, command: str) -> str:
    """A command whose output begins behind a line with the token."""
    return f"echo; echo {token}; {command}"


def said(token: str, output: bytes) -> bytes | None:
    """What a command said behind its token; None where the token is not there."""
    _, found, rest = output.partition(f"\n{token}\n".encode())
    return rest if found else None


def acquire(folder: str, owner: str, who: str) -> str:
    """Take the lock if it is free: `taken`, `full` where its words cannot be written, else `held` and what it says."""
    lock = quoted(f"{folder}/lock")
    return (
        f"mkdir -p {quoted(folder)} || exit 3; "
        f"if mkdir {lock} 2>/dev/null; then {_owned(lock, owner, who)}; else {observe(folder)}; fi"
    )


def observe(folder: str) -> str:
    """What the lock says: `held`, its owner, who that is, its beat, and whether somebody takes it over."""
    lock = quoted(f"{folder}/lock")
    return f"echo held; cat {lock}/owner {lock}/who {lock}/beat 2>/dev/null; echo {lock}/over-*"


def take_over(folder: str, state: str, owner: str, who: str) -> str:
    """Take a lock whose state has not changed for a lease: of several only one makes the folder named for the state.
    What its holder left at work on this board is ended, unless the board was booted since."""
    lock = quoted(f"{folder}/lock")
    return (
        f"if mkdir {lock}/over-{state} 2>/dev/null; then {kill(folder)}; rm -rf {lock}; "
        f"if mkdir {lock}; then {_owned(lock, owner, who)}; fi; else echo lost; fi"
    )


def retake(folder: str, old: str, owner: str, who: str) -> str:
    """Take a lock that is one's own of an earlier connection, or a free one; else `held` and what it says."""
    lock = quoted(f"{folder}/lock")
    return (
        f"if {_is_owner(lock, old)}; then {kill(folder)}; rm -rf {lock} {quoted(run_folder(folder, old))}; fi; "
        f"{acquire(folder, owner, who)}"
    )


def kill(folder: str) -> str:
    """End what the lock's holder runs."""
    lock = quoted(f"{folder}/lock")
    same = f'[ "$(cat {BOOT} 2>/dev/null)" = "$(cat {lock}/boot 2>/dev/null)" ]'
    return f'p="$(cat {lock}/pid 2>/dev/null)"; [ -n "$p" ] && {same} && kill -9 "-$p" 2>/dev/null; :'


def beat(folder: str, owner: str, count: int) -> str:
    """Say that the owner lives: `ok`, or `lost` where the lock is another's by now."""
    lock = quoted(f"{folder}/lock")
    return f"if {_is_owner(lock, owner)}; then echo {owner} {count} > {lock}/beat && echo ok; else echo lost; fi"


def release(folder: str, owner: str) -> str:
    """Give the lock back, where it is still one's own, with everything of the run."""
    lock = quoted(f"{folder}/lock")
    return f"rm -rf {quoted(run_folder(folder, owner))}; if {_is_owner(lock, owner)}; then rm -rf {lock}; fi; echo ok"


def sweep(folder: str, owner: str) -> str:
    """Remove what earlier runs left; whoever holds the lock may."""
    return (
        f"for d in {quoted(folder)}/run-*; do "
        f'[ "$d" = {quoted(run_folder(folder, owner))} ] || rm -rf "$d"; done; mkdir -p {quoted(folder)}/cache; echo ok'
    )


def run_folder(folder: str, owner: str) -> str:
    """Where a run keeps its inputs and outputs."""
    return f"{folder}/run-{owner}"


def cached(folder: str) -> str:
    """One line for each model in the cache: digest, bytes, when it was used last."""
    cache = quoted(f"{folder}/cache")
    return f'for f in {cache}/*.ok; do [ -e "$f" ] && cat "$f"; done; echo end'


def mark(folder: str, digest: str, size: int, used: int) -> str:
    """Say that a model is whole, and when it was used."""
    return f"echo {digest} {size} {used} > {quoted(f'{folder}/cache/{digest}.ok')} && echo ok"


def forget(folder: str, digests: Sequence[str]) -> str:
    """Remove models, the word that they are whole first."""
    paths = [quoted(f"{folder}/cache/{digest}{end}") for digest in digests for end in (".ok", ".hbm")]
    return f"rm -f {' '.join(paths)}; echo ok"


def store(path: str) -> str:
    """What comes in becomes a file."""
    return f"cat > {quoted(path)}"


def serve(
    folder: str, owner: str, token: str, command: str, *, environment: Mapping[str, str], dumps: str = "output"
) -> str:
    """The loop that runs samples as their numbers come in: `<number> <inputs for the tool>` a line.

    For each it prints `token begin <number>`, the log, the dumps, each behind a line of its own, and `token end
    <number> <exit code>`. At the end of its input, which is also that of a connection that broke, everything of the
    run is gone.
    """
    run, lock = quoted(run_folder(folder, owner)), quoted(f"{folder}/lock")
    return f"""
mkdir -p {run}/out || exit 3
echo $$ > {lock}/pid; cat {BOOT} > {lock}/boot 2>/dev/null
{exported(environment)}
command={quoted(command)}
echo; echo {token}
cd {run}/out || exit 3
while read -r number arguments; do
  rm -f {run}/out/*
  echo "{token} begin $number"
  eval "$command $arguments" < /dev/null > {run}/log 2>&1
  code=$?
  cat {run}/log
  for f in {run}/out/model_infer_{dumps}_*.bin; do
    if [ -e "$f" ]; then echo; echo "{token} file ${{f##*/}}"; cat "$f"; fi
  done
  echo; echo "{token} end $number $code"
  rm -rf {run}/in-"$number"
done
cd /; rm -rf {run}
if {_is_owner(lock, owner)}; then rm -f {lock}/pid; fi
"""


def exported(environment: Mapping[str, str]) -> str:
    """Variables for what follows."""
    told = " ".join(f"{name}={quoted(value)}" for name, value in environment.items())
    return f"export {told}" if told else ":"


def _owned(lock: str, owner: str, who: str) -> str:
    written = f"echo {owner} > {lock}/owner && echo {quoted(who)} > {lock}/who && echo {owner} 0 > {lock}/beat"
    return f"if {written}; then echo taken; else rm -rf {lock}; echo full; fi"


def _is_owner(lock: str, owner: str) -> str:
    return f'[ "$(cat {lock}/owner 2>/dev/null)" = {owner} ]'
