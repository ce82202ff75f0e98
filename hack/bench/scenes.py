"""What happens to a controller while it is watched: large changes, and what tenants can write to keep it busy.

Each scene fills the store before the controller starts, makes ready what is to happen, and returns what lets it happen.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from hack.bench import changes, tenants
from hack.bench.stage import Act
from hack.bench.store import Store


@dataclass(frozen=True, slots=True)
class Scene:
    """`prepare` takes a store and the scale: 1 is the size that is judged.

    `hostile`: other queues' lifts are watched meanwhile. `starts`: the start of the controller is watched as well. `standby`:
    another one leads all the time. `limit_s`: if it goes on for longer it is not waited for.
    """

    what: str
    prepare: Callable[[Store, float], Act]
    hostile: bool = False
    starts: bool = False
    standby: bool = False
    limit_s: float = 30.0


_LEADERS: Final[dict[str, Scene]] = {
    "join": Scene("45 nodes join and leave, 10,000 pods of their card", changes.nodes_join),
    "change": Scene("45 nodes change, 10,000 pods of their card", changes.nodes_change),
    "affinities-60": Scene(
        "8 affinities of 400 x 41, 60 nodes", tenants.costly_affinities(8, 60), hostile=True
    ),
    "affinities-1000": Scene(
        "5 affinities of 400 x 41, 1,000 nodes", tenants.costly_affinities(5, 1000), hostile=True
    ),
    "alike": Scene(
        "500 alike on 1,000 full nodes, cards come free", tenants.alike_on_full_nodes, hostile=True
    ),
    "varied-gangs": Scene("30 gangs of 20 with choices, CPU differs", tenants.varied_gangs, hostile=True),
    "puzzling-gangs": Scene("30 gangs of 20 that nobody works out", tenants.puzzling_gangs, hostile=True),
    "many-gangs": Scene("1,000 gangs of 10", tenants.many_gangs, hostile=True),
    "share-gang": Scene("one gang of 400 shares with an affinity", tenants.gang_of_shares, hostile=True),
    "alternatives": Scene(
        "3 pods of 37,000 alternatives, 20 changes", tenants.endless_alternatives, hostile=True
    ),
    "nowhere": Scene(
        "start over 100,000 pods in as many queues that do not exist",
        tenants.nowhere,
        starts=True,
        limit_s=90.0,
    ),
    "template": Scene("a template of 5,000 pods is made anew 20 times", tenants.template_of_many),
    "lifts": Scene("10,000 lifts in one queue", changes.many_lifts, hostile=True),
    "metrics": Scene("/metrics, 2,000 queues x 4 cards", changes.metrics_page),
    "start": Scene("start over 100,000 pods on 5,000 nodes", changes.start, starts=True),
    "namespace": Scene("namespace of 10,000 pods changes its queue", changes.namespace_queue),
    "crowd": Scene("namespace of 100,000 pods changes its queue", changes.crowded_namespace, limit_s=90.0),
    "question": Scene("filter with a body of 16 MB", changes.large_question),
}

_RIVALS: Final = {"lifts": changes.rival_lifts}
"""What a leader decides by itself; on a standby somebody else does."""


def _with_standbys(leaders: dict[str, Scene]) -> Iterator[tuple[str, Scene]]:
    """Each scene on a leader, and the same on a replica that does not lead."""
    for name, scene in leaders.items():
        yield name, scene
        what, prepare = f"{scene.what}, on a standby", _RIVALS.get(name, scene.prepare)
        yield f"{name}-standby", replace(scene, what=what, prepare=prepare, hostile=False, standby=True)


SCENES: Final[dict[str, Scene]] = dict(_with_standbys(_LEADERS))
"""By name, in the order in which they are gone through."""
