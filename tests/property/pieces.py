"""How much is done between two pauses, wherever that is said: made small, the smallest queue and gang has every pause."""

import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

_PIECES: Final = re.compile(r"(^|_)STEP$")


def pieces() -> Iterator[tuple[ModuleType, str]]:
    """The constants of decisions and books that say so, with their modules."""
    parts = ("core.plan.", "core.queues.")
    for module in [module for name, module in sys.modules.items() if name.startswith(parts)]:
        yield from ((module, name) for name in vars(module) if _PIECES.search(name))
