"""Whatever a tenant does, in whatever order: what runs of a queue never exceeds its quota, and no queue that is closed is used.

Counted is what pods occupy on nodes, whole cards, parts and shares, and the devices that they were started with, whatever has
become of the claims since, under the queue that the controller has put on record for them; and what the books charge. Out of
this by design, see docs/security.md: pods in a grace that is short enough, by force or not, and claims of a pod that came with
its node.
"""

from collections import Counter

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from core import names
from core.objects import Pod
from core.settings import Settings
from tests.adversary.tenant import ACTIONS as ACTIONS_OF_A_TENANT
from tests.adversary.tenant import QUOTAS, Tenant
from tests.adversary.ways import CLASS, CLOSED, DENYING, INFERRING, LINKED, MIG, MPS, SERVED, SHARE
from tests.adversary.world import World

LONG = settings().max_examples >= 5000
"""With `--hypothesis-profile nightly`: more of both."""
SEEDS = range(1, 12) if LONG else (1, 2, 6, 8, 11, 14)
ACTIONS = 1000 if LONG else 400
"""For each seed."""
HISTORIES = 1000 if LONG else 200
SHORTEST = 50
"""So 10,000 actions in every run."""
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS_OF_A_TENANT), st.integers(0, 999)), min_size=SHORTEST, max_size=60
)

WORLDS = (DENYING, INFERRING, LINKED)
"""Both ways in which all cards are counted that nobody names; and cards that are devices of classes, and have shares, at once."""

UNITS = {"A": 1, "B": 0, MPS: 1, MIG: 1, names.MGPU_CORE: SHARE}
UNITS |= {f"deviceclass/{name}": 1 for name in (CLASS, SERVED)}
"""What a queue has quota for, of each key, for one pod."""
FIXED = (names.CHARGED_QUEUE_ANNOTATION, names.GANG_OF_ANNOTATION, names.GANG_ANNOTATION)
"""Nothing of this is ever another once a pod was let in."""
TO_BE_HAD = {key for key, unit in UNITS.items() if unit}


def used(world: World) -> dict[str, Counter[str]]:
    """Queue -> what its running pods have; a claim that several of them share counts once. '' for no queue on record."""
    found: dict[str, Counter[str]] = {}
    claims: dict[str, dict[str, Counter[str]]] = {}
    for view in world.running():
        if view.deleting and view.grace_s <= world.settings.quota.max_free_grace_s:
            continue
        queue = view.annotations.get(names.CHARGED_QUEUE_ANNOTATION, "")
        found.setdefault(queue, Counter()).update(world.occupied_by(view))
        claims.setdefault(queue, {}).update(world.prepared.get(view.uid, {}))
    for queue, prepared in claims.items():
        for devices in prepared.values():
            found[queue].update({f"deviceclass/{name}": n for name, n in devices.items()})
    return {queue: _with_equivalents(world, amounts) for queue, amounts in found.items()}


def _with_equivalents(world: World, amounts: Counter[str]) -> Counter[str]:
    """Devices of a class that serves a card are cards as well, and cards are devices of each of its classes.

    Shares, in hundredths, are parts of cards where they count as that; what they are not whole of is a card begun.
    """
    result = Counter(amounts)
    if world.settings.mgpu.card_quota:
        result["A"] += -(-amounts[names.MGPU_CORE] // 100)
    for card, classes in world.settings.cards.equivalents.items():
        devices = {name: f"deviceclass/{name}" for name in classes}
        for key in devices.values():
            result[card] += amounts[key]
            result[key] += amounts[card]
    return result


def assert_within_quota(world: World) -> None:
    """What runs, and what the books say: else whoever shares a queue would be kept from what it has left."""
    for queue, pods in QUOTAS.items():
        for key, amount in world.all_charged(queue).items():
            limit = pods * UNITS.get(key, amount)
            assert amount <= limit, f"{queue} is charged {amount} of {key}, its quota is {limit}"
    for queue, amounts in used(world).items():
        for key, amount in amounts.items():
            limit = QUOTAS.get(queue, 0) * UNITS[key]
            assert amount <= limit, f"{queue or 'no queue'} uses {amount} of {key}, its quota is {limit}"
    assert CLOSED not in {view.annotations.get(names.CHARGED_QUEUE_ANNOTATION) for view in world.running()}


@pytest.mark.timeout(600 if LONG else 400)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_runs_stays_within_the_quota(seed: int) -> None:
    tenant = Tenant(seed, WORLDS[seed % len(WORLDS)])
    log: list[str] = []
    seen, records = Seen(), Records()
    for _ in range(ACTIONS):
        log.append(tenant.act())
        try:
            assert_within_quota(tenant.world)
            records.look(tenant.world)
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}, after {len(log)} actions, the last ones {log[-8:]}: {error}"
            ) from None
        seen.look(tenant.world)
    assert len(seen.ran) >= ACTIONS / 50, tenant.done
    assert len(tenant.refused) > 5, tenant.refused
    assert seen.had.keys() == TO_BE_HAD
    assert seen.gangs, "no gang of several ever ran"
    assert honest_pods_run(tenant)


@pytest.mark.timeout(1800 if LONG else 400)
def test_whatever_the_history_it_stays_within_the_quota() -> None:
    """Told step by step, so that a history that shows a fault is made as plain as can be."""
    seen, actions = Seen(), Counter[str]()

    @settings(max_examples=HISTORIES)
    @given(STEPS, st.sampled_from(WORLDS))
    def explore(steps: list[tuple[str, int]], setting: Settings) -> None:
        tenant, records = Tenant(0, setting), Records()
        for name, seed in steps:
            note(tenant.do(name, seed))
            assert_within_quota(tenant.world)
            records.look(tenant.world)
            seen.look(tenant.world)
        actions.update(tenant.done)
        assert honest_pods_run(tenant)

    explore()
    assert actions.total() >= HISTORIES * SHORTEST
    assert {*ACTIONS_OF_A_TENANT} <= actions.keys()
    assert seen.had.keys() == TO_BE_HAD
    assert seen.gangs


class Seen:
    """What ever ran. A tenant that gets nothing to run shows nothing: whole cards, parts, shares and devices."""

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.had: Counter[str] = Counter()
        self.gangs: set[str] = set()
        """Gangs without PodGroup of which several members were let in together."""

    def look(self, world: World) -> None:
        self.ran |= {view.uid for view in world.running()}
        for view in filter(_holds, world.views()):
            together = view.annotations.get(names.GANG_ANNOTATION, "")
            if view.gang is not None and view.let_in and int(together or 0) > 1:
                self.gangs.add(view.gang.key)
        for amounts in used(world).values():
            self.had |= amounts


class Records:
    """What one history has on record of those who were let in."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str | None, ...]] = {}

    def look(self, world: World) -> None:
        """Raises AssertionError where a record is another than before."""
        for view in world.views():
            if view.let_in:
                said = tuple(map(view.annotations.get, FIXED))
                assert self._of.setdefault(view.uid, said) == said, view.name


def honest_pods_run(tenant: Tenant) -> bool:
    """Whether, once all that runs or was let in has ended, those who ask properly get what the queues have quota for."""
    world = tenant.world
    for view in world.views():
        if _holds(view):
            world.gone(world.get("Pod", view.name))
    world.collect()
    fresh = [tenant.honest(number) for number in range(QUOTAS["own"])]
    world.settle()
    return {*fresh} <= {view.name for view in world.running()}


def _holds(view: Pod) -> bool:
    """Whether a pod has been let in or has a node; one that waits or that nobody binds must be in nobody's way."""
    return view.bound or names.CHARGED_QUEUE_ANNOTATION in view.annotations
