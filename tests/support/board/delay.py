"""A slow way between two network namespaces: packets wait in user space, as this needs no netem in the kernel.

Arguments: the /proc folder of a process in the namespace of the far end, the name of the device at either end, and the
milliseconds that every packet waits. Writes a line to stdout once both devices are there; ends with its stdin.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF, TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
NETWORK_NAMESPACE = 0x40000000
PACKET_BYTES = 65536
MOST_WAITING = 4096


def device(name: str) -> int:
    """A TUN device in the namespace that we are in."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN_WITHOUT_HEADER))
    return handle


def enter(process: str) -> None:
    """Go over to the network namespace of a process."""
    handle = os.open(f"{process}/ns/net", os.O_RDONLY)
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(handle, NETWORK_NAMESPACE):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(handle)


def main(process: str, name: str, milliseconds: str) -> None:
    """Until stdin ends."""
    near = device(name)
    enter(process)
    far = device(name)
    other = {near: far, far: near}
    wait = float(milliseconds) / 1000
    waiting: deque[tuple[float, int, bytes]] = deque()
    print("ready", flush=True)
    while True:
        patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable = select.select([0, near, far], [], [], patience)[0]
        if 0 in readable:
            return
        for handle in readable:
            packet = os.read(handle, PACKET_BYTES)
            if len(waiting) < MOST_WAITING:
                waiting.append((time.monotonic() + wait, other[handle], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, target, packet = waiting.popleft()
            try:
                os.write(target, packet)
            except OSError:
                continue  # the device is down: the packet is lost, as on any other link


if __name__ == "__main__":
    main(*sys.argv[1:])
