"""All guards."""

from typing import Final

from hack.mutants.binds import BINDS
from hack.mutants.decisions import DECISIONS
from hack.mutants.writes import WRITES

GUARDS: Final = (*WRITES, *BINDS, *DECISIONS)
