"""Free ports on the loopback interface, outside the range that the kernel hands to outgoing connections."""

import os
import random
import socket
import sys

_FIRST, _LAST = 20000, 32000
_TRIES = 200
_handed_out: dict[int, socket.socket | None] = {}
"""A process gets no port twice, as the one that it was for may not listen yet; with what keeps it from other processes."""


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
        if candidate in _handed_out or not _is_free(candidate):
            continue
        try:
            _handed_out[candidate] = _reservation(candidate)
        except OSError:
            continue
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


def _reservation(port: int) -> socket.socket | None:
    """What says to other processes of this user that the port is ours, while we live. Raises OSError where one has it.

    A name without a file, which only Linux has: nothing is left behind, however a process ends.
    """
    if sys.platform != "linux":
        return None
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0cardquota-port-{os.getuid()}-{port}")
    except OSError:
        name.close()
        raise
    return name
