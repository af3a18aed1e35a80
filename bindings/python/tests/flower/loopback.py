"""A process in a network of its own, where there is nothing but loopback (Linux)."""

from __future__ import annotations

import fcntl
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def isolation() -> list[str]:
    """How to start a program in such a network: as root, or as somebody who may be root in a namespace. Nothing
    where neither is permitted."""
    for prefix in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if shutil.which("unshare") is None:
            break
        probe = [*prefix, sys.executable, __file__]
        if subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode == 0:
            return prefix
    return []


def raise_loopback() -> None:
    """Switches the loopback of this network on, which is off in a new one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def interfaces() -> list[str]:
    """The network interfaces there are."""
    return [name for _, name in socket.if_nameindex()]


def begin() -> Path:
    """What a script does first: it ends in an orderly way when told to, and has a network. Returns its folder."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder, network = sys.argv[1:]
    if network == "isolated":
        raise_loopback()
    return Path(folder)


if __name__ == "__main__":
    raise_loopback()
    sys.exit(0 if interfaces() == ["lo"] else 1)
