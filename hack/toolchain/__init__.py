"""Builds the real parts of the local control plane from their Go modules, once per set of pinned versions.

Standard library only: it runs before the project's dependencies are installed as well as after.
"""

from hack.toolchain.catalogue import BINARIES, OTHERS, ToolchainError
from hack.toolchain.progress import Reporter, to_stream
from hack.toolchain.store import Store

__all__ = ["BINARIES", "OTHERS", "Reporter", "Store", "ToolchainError", "to_stream"]
