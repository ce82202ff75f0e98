"""Free ports on the loopback interface, outside the range that the kernel hands to outgoing connections."""

import random
import socket

_FIRST, _LAST = 20000, 32000
_TRIES = 200


def free_ports(count: int) -> list[int]:
    """Return `count` different ports on which nobody listens at present.

    Between this call and the listening of a program another one can take the port; the caller must be ready to try
    again. Ports that the kernel gives to clients by itself (32768 and above) are left out, since those come and go
    all the time.
    """
    chosen: list[int] = []
    for candidate in random.SystemRandom().sample(range(_FIRST, _LAST), _TRIES):
        if len(chosen) == count:
            return chosen
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
        chosen.append(candidate)
    raise OSError(f"no {count} free ports between {_FIRST} and {_LAST}")
