"""Whatever a tenant does, in whatever order: what runs of a queue never exceeds its quota, and no queue that is closed is used.

Counted is what pods occupy on nodes and the devices that they were started with, whatever has become of the claims since, under
the queue that the controller has put on record
for them. Out of this by design, see docs/security.md: pods in a grace that is short enough, claims of a pod that came with its
node, forced deletions.
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
from tests.adversary.ways import CLASS, CLOSED, DENYING, INFERRING, MIG, MPS, SERVED, SHARE
from tests.adversary.world import World

LONG = settings().max_examples >= 5000
"""With `--hypothesis-profile nightly`: 10,000 actions in few long histories, and 10,000 in many short ones."""
SEEDS = range(1, 11) if LONG else range(1, 4)
ACTIONS = 1000 if LONG else 400
"""For each seed."""
HISTORIES = 250 if LONG else 5
SHORT = (40, 60)
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS_OF_A_TENANT), st.integers(0, 999)), min_size=SHORT[0], max_size=SHORT[1]
)

UNNAMED = (DENYING, INFERRING)
"""What is made of cards that nobody names: both ways in which all are counted."""

UNITS = {"A": 1, "B": 0, MPS: 1, MIG: 1, names.MGPU_CORE: SHARE}
UNITS |= {f"deviceclass/{name}": 1 for name in (CLASS, SERVED)}
"""What a queue has quota for, of each key, for one pod."""


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
    return found


def assert_within_quota(world: World) -> None:
    for queue, amounts in used(world).items():
        for key, amount in amounts.items():
            limit = QUOTAS.get(queue, 0) * UNITS[key]
            assert amount <= limit, f"{queue or 'no queue'} uses {amount} of {key}, its quota is {limit}"
    assert CLOSED not in {view.annotations.get(names.CHARGED_QUEUE_ANNOTATION) for view in world.running()}


@pytest.mark.timeout(600 if LONG else 180)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_runs_stays_within_the_quota(seed: int) -> None:
    tenant = Tenant(seed, UNNAMED[seed % 2])
    log: list[str] = []
    ran: set[str] = set()
    for _ in range(ACTIONS):
        log.append(tenant.act())
        try:
            assert_within_quota(tenant.world)
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}, after {len(log)} actions, the last ones {log[-8:]}: {error}"
            ) from None
        ran |= {view.uid for view in tenant.world.running()}
    # A tenant that gets nothing to run shows nothing.
    assert len(ran) >= ACTIONS / 50, tenant.done
    assert len(tenant.refused) > 5, tenant.refused
    assert honest_pods_run(tenant)


@pytest.mark.timeout(1200 if LONG else 180)
@settings(max_examples=HISTORIES)
@given(STEPS, st.sampled_from(UNNAMED))
def test_whatever_the_history_it_stays_within_the_quota(
    steps: list[tuple[str, int]], unnamed: Settings
) -> None:
    """Told step by step, so that a history that shows a fault is made as plain as can be."""
    tenant = Tenant(0, unnamed)
    for name, seed in steps:
        note(tenant.do(name, seed))
        assert_within_quota(tenant.world)
    assert honest_pods_run(tenant)


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
