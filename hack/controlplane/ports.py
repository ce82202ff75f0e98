"""Free ports on the loopback interface, outside the range that the kernel hands to outgoing connections."""

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

_FIRST, _LAST = 20000, 32000
_TRIES = 200
_handed_out: set[int] = set()
"""A process gets no port twice, as the one that it was for may not listen yet."""


def free_ports(count: int) -> list[int]:
    """Return `count` different ports on which nobody listens, and that neither this process nor another was given.

    A port is kept from others who ask here until this process ends. Programs that do not ask can still take one
    before ours listens: the caller must be ready to try again. Ports that the kernel gives to clients by itself
    (32768 and above) are left out, since those come and go all the time. Raises OSError where there are not enough.
    """
    chosen: list[int] = []
    for candidate in random.SystemRandom().sample(range(_FIRST, _LAST), min(_TRIES, _LAST - _FIRST)):
        if len(chosen) == count:
            break
        if candidate not in _handed_out and _reserved(candidate) and _is_free(candidate):
            _handed_out.add(candidate)
            chosen.append(candidate)
    if len(chosen) < count:
        raise OSError(f"no {count} free ports between {_FIRST} and {_LAST}")
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _reserved(port: int) -> bool:
    """Whether no other process of this user holds the port; from now on this one does. The kernel frees it at our end."""
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _reservations() -> int:
    """A file of which each byte stands for a port. It is never closed: that would free all that this process holds."""
    file = Path(tempfile.gettempdir(), f"cardquota-ports-{os.getuid()}")
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
