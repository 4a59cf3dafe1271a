"""What the loop on the board prints, cut at its token: logs and dumps of one sample after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from driftgate.backends.board.transport import Channel, Lost

CHUNK = 1 << 18
#: A board that prints so much before its token is no board that runs our loop.
MOST_NOISE = 1 << 20


class Garbled(Exception):
    """What came is not what the loop prints; the words are for a reader."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One sample: the tool's log, its exit code, and what it dumped by file name."""

    number: int
    code: int
    log: str
    files: dict[str, bytes]


@dataclass(slots=True)
class Reader:
    """Reads a channel up to the next line that begins with the token."""

    channel: Channel
    token: str
    seconds: float
    _held: bytearray = field(default_factory=bytearray)

    def greeting(self) -> None:
        """Everything that a shell prints before our loop begins. Raises Garbled where it never does."""
        self._until(f"\n{self.token}\n".encode(), most=MOST_NOISE)

    def frame(self) -> Frame:
        """The next sample. Raises Lost and Garbled."""
        mark = f"{self.token} ".encode()
        self._until(mark)
        number = self._number(self._line(), "begin")
        log = self._until(b"\n" + mark)
        files: dict[str, bytes] = {}
        while True:
            word, _, rest = self._line().partition(" ")
            if word == "end":
                ended, _, code = rest.partition(" ")
                if ended != str(number) or not code.isdigit():
                    raise Garbled(f"sample {number} ended as {rest!r}")
                return Frame(number, int(code), log.decode("utf-8", "replace"), files)
            if word != "file" or not rest:
                raise Garbled(f"{word!r} where a file or the end was wanted")
            files[rest] = self._until(b"\n" + mark)

    def _number(self, line: str, word: str) -> int:
        found, _, number = line.partition(" ")
        if found != word or not number.isdigit():
            raise Garbled(f"{line[:80]!r} where a sample was wanted")
        return int(number)

    def _line(self) -> str:
        return self._until(b"\n", most=4096).decode("utf-8", "replace")

    def _until(self, mark: bytes, *, most: int | None = None) -> bytes:
        """What stands before a mark, which is taken as well."""
        searched = 0
        while (at := self._held.find(mark, max(searched - len(mark), 0))) < 0:
            searched = len(self._held)
            if most is not None and searched > most:
                raise Garbled(f"{searched} bytes without {mark[:60]!r}")
            more = self.channel.read(CHUNK, seconds=self.seconds)
            if not more:
                raise Lost("read", f"the board's end of the connection closed: {self.channel.last_words()[-200:]}")
            self._held += more
        found = bytes(self._held[:at])
        del self._held[: at + len(mark)]
        return found
