"""The table: what must come of every attack, in every way of using a card.

`attack | ways | what comes of it`: what the client was refused, what became of the second pod `b`, what the tenant's queue is
charged with in the end, how many pods use cards. The queue has quota for one. `*` stands for all attacks, or for all ways that
no other line of the attack names. A line that begins with `cannot` says why there is no such thing.
"""

from typing import Any, Final

import pytest

from tests.adversary.attacks import ATTACKS
from tests.adversary.ways import IMPOSSIBLE, WAYS

CANNOT: Final = "cannot"

TABLE: Final = """
create                | *                                    | b waits, charged 1, run 1
create                | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

update while gated    | *                                    | refused CardNameMissing GateProtected RecordProtected label:RecordProtected, b waits, charged 1, run 1
update while gated    | inferred share claim template extended implicit | refused GateProtected RecordProtected label:RecordProtected, b waits, charged 1, run 1
update while gated    | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

update after lift     | *                                    | refused FieldFixed RecordProtected, b waits, charged 1, run 1
update after lift     | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

update after bind     | *                                    | refused FieldFixed RecordProtected, b waits, charged 1, run 1
update after bind     | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

owner reference       | *                                    | b waits, charged 1, run 1
owner reference       | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

PodGroup              | *                                    | b waits, charged 1, run 1
PodGroup              | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

Job                   | *                                    | b waits, charged 1, run 1
Job                   | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

namespace annotation  | *                                    | refused Forbidden, b waits, charged 1, run 1
namespace annotation  | unnamed beside                       | refused CardNameMissing Forbidden, no b, charged 0, run 0

status                | *                                    | refused FieldFixed Forbidden RecordProtected, b waits, charged 1, run 1
status                | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

binding by hand       | *                                    | refused CardNotOnNode Forbidden InsufficientScalarQuota PodGated, b unbound, charged 1, run 1
binding by hand       | inferred                             | refused CardNameMissing Conflict Forbidden PodGated, b running, charged 1, run 1
binding by hand       | share                                | refused Forbidden InsufficientScalarQuota PodGated, b unbound, charged 1, run 1
binding by hand       | claim template extended implicit     | refused Forbidden InsufficientDeviceQuota PodGated, b unbound, charged 1, run 1
binding by hand       | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

nodeName              | *                                    | refused NodeNamePreset, no b, charged 1, run 1
nodeName              | claim template                       | b pending, charged 3, run 1
nodeName              | extended implicit                    | b running, charged 1, run 1
nodeName              | unnamed                              | refused CardNameMissing, no b, charged 0, run 0
nodeName              | beside                               | refused CardNameMissing NodeNamePreset, no b, charged 0, run 0

image of a static pod | *                                    | refused NodeNamePreset QueueNotAllowed, no b, charged 1, run 1
image of a static pod | claim template                       | refused QueueNotAllowed, b pending, charged 2, run 1
image of a static pod | extended implicit                    | refused QueueNotAllowed, b pending, charged 1, run 1
image of a static pod | unnamed                              | refused CardNameMissing, no b, charged 0, run 0
image of a static pod | beside                               | refused CardNameMissing NodeNamePreset QueueNotAllowed, no b, charged 0, run 0

other scheduler       | *                                    | b unbound, charged 1, run 1
other scheduler       | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

long deletion         | *                                    | b waits, charged 1, run 1
long deletion         | unnamed beside                       | refused CardNameMissing NotFound, no b, charged 0, run 0

forced deletion       | *                                    | refused Forbidden, b waits, charged 1, run 1
forced deletion       | unnamed beside                       | refused CardNameMissing NotFound, no b, charged 0, run 0

claims made anew      | *                                    | b running, charged 1, run 1
claims made anew      | claim template                       | b unbound, charged 1, run 0
claims made anew      | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

claims disowned       | *                                    | b waits, charged 1, run 1
claims disowned       | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

claims taken away     | *                                    | b waits, charged 1, run 1
claims taken away     | claim template extended implicit     | b waits, charged 1, run 0
claims taken away     | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

claims made larger    | *                                    | b waits, charged 1, run 1
claims made larger    | claim template extended implicit     | b waits, charged 1, run 0
claims made larger    | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

foreign queue         | *                                    | refused NodeNamePreset QueueNotAllowed, b waits QueueNotAllowed, charged 1, run 1
foreign queue         | claim template extended implicit     | refused QueueNotAllowed, b waits QueueNotAllowed, charged 1, run 1
foreign queue         | unnamed                              | refused CardNameMissing, no b, charged 0, run 0
foreign queue         | beside                               | refused CardNameMissing NodeNamePreset QueueNotAllowed, no b, charged 0, run 0

no webhook            | *                                    | refused FieldFixed RecordProtected WebhookAway, no b, charged 1, run 1
no webhook            | unnamed beside                       | refused CardNameMissing WebhookAway, no b, charged 0, run 0

no controller         | *                                    | refused Conflict FieldFixed GateProtected RecordProtected, b waits, charged 1, run 1
no controller         | unnamed beside                       | refused CardNameMissing, no b, charged 0, run 0

*                     | resize                               | cannot: only CPU and memory of a running container can be resized, and `edit` holds no resize of pods
*                     | ephemeral                            | cannot: an ephemeral container asks for no resources, and `edit` may not add one
"""
"""A pod with claims that comes with its node is let in and charged, which is by design: no kubelet starts it before a scheduler
has allocated its claims, for another pod. Nor does one with an extended resource get a device there: no scheduler made a
claim for it. What is inferred may be bound to a node without cards, where it has none."""


def expected() -> dict[tuple[str, str], str]:
    """Attack and way -> what must come of it. Raises AssertionError for a table that is not complete, or says a thing twice."""
    lines = [[part.strip() for part in line.split("|")] for line in TABLE.splitlines() if line]
    found: dict[tuple[str, str], str] = {}
    general: dict[str, str] = {}
    for attack, ways, comes in lines:
        if ways == "*":
            assert attack not in general, attack
            general[attack] = comes
            continue
        for way in ways.split():
            for each in ATTACKS if attack == "*" else (attack,):
                assert (each, way) not in found, (each, way)
                found[each, way] = comes
    for attack in ATTACKS:
        for way in (*WAYS, *IMPOSSIBLE):
            if (attack, way) not in found:
                found[attack, way] = general[attack]
    assert found.keys() == {(attack, way) for attack in ATTACKS for way in (*WAYS, *IMPOSSIBLE)}
    return found


def cell(attack: str, way: str) -> Any:
    """The parameters of a test that shows this cell of the table."""
    assert (attack, way) in expected()
    return pytest.param(way, id=f"{attack}-{way}".replace(" ", "-"))
