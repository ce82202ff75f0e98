"""Books in which changes of claims, templates, classes and parents come to the pods one at a time, beside books where they do at once."""

import json
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.objects import DeviceClass, Pod
from core.queues import backlog
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.pods import PodBuilder

CLAIMS, TEMPLATES, QUEUES, CLASSES = ("c1", "c2"), ("t1", "t2"), ("qa", "qb"), ("gpu", "nic")
SERVED = "example.com/gpu"

Event = Callable[[Ledger], object]


def some_pod(random: Random) -> Pod:
    """In any stage, with any record."""
    pod, record = a_pod(f"p{random.randint(0, 7)}").in_queue(random.choice(QUEUES)), dict[str, Any]()
    for number in range(random.randint(1, 2)):
        entry, reference = f"e{number}", random.choice((*CLAIMS, *TEMPLATES))
        pod = with_reference(random, pod, entry, reference)
        record[entry] = {f"deviceclass/{random.choice(CLASSES)}": str(random.randint(1, 3))}
        if random.random() < 0.7:
            record[entry]["uid"] = f"{random.choice(CLAIMS)}-{random.randint(0, 2)}"
        if random.random() < 0.2:
            record[entry]["unasked"] = "true"
    if random.random() < 0.3:
        pod = pod.limit(SERVED, 1)
    if random.random() < 0.4:
        return pod.gated().view()
    if random.random() < 0.7:
        pod = pod.charged(random.choice(QUEUES))
        pod = pod.annotation(names.CLAIMS_ANNOTATION, json.dumps(record)) if random.random() < 0.85 else pod
    if random.random() < 0.5:
        pod = pod.bound_to("n", phase=random.choice(("Running", "Pending")))
    return pod.view()


def with_reference(random: Random, pod: PodBuilder, entry: str, reference: str) -> PodBuilder:
    if reference in CLAIMS:
        return pod.claim(entry, name=reference)
    pod = pod.claim(entry, template=reference)
    return pod.generated_claim(entry, random.choice(CLAIMS)) if random.random() < 0.3 else pod


def event(random: Random) -> Event:
    """Something that a watch shows."""
    kind = random.choice((pods, pods, pods, claims, claims, claims, templates, classes, parents))
    return kind(random)


def pods(random: Random) -> Event:
    if random.random() < 0.1:
        uid = f"uid-ml-p{random.randint(0, 7)}"
        return lambda ledger: ledger.drop_pod(uid)
    pod = some_pod(random)
    return lambda ledger: ledger.put_pod(pod)


def claims(random: Random) -> Event:
    name = random.choice(CLAIMS)
    if random.random() < 0.25:
        return lambda ledger: ledger.devices.drop_claim(f"ml/{name}")
    built = a_claim(name).exactly("r", random.choice(CLASSES), count=random.randint(0, 3))
    built = built.uid(f"{name}-{random.randint(0, 2)}")
    built = built.allocated("r") if random.random() < 0.3 else built
    claim = (built.made_for(f"p{random.randint(0, 7)}") if random.random() < 0.3 else built).view()
    return lambda ledger: ledger.devices.put_claim(claim)


def templates(random: Random) -> Event:
    name = random.choice(TEMPLATES)
    if random.random() < 0.3:
        return lambda ledger: ledger.devices.drop_template(f"ml/{name}")
    template = a_template(name).exactly("r", random.choice(CLASSES), count=random.randint(0, 3)).view()
    return lambda ledger: ledger.devices.put_template(template)


def classes(random: Random) -> Event:
    name, chance = random.choice(CLASSES), random.random()
    if chance < 0.3:
        return lambda ledger: ledger.drop_class(name)
    if chance < 0.5:
        return lambda ledger: ledger.release_resource(SERVED)
    served = random.choice(("", SERVED))
    return lambda ledger: ledger.put_class(DeviceClass(name, extended=served))


def parents(random: Random) -> Event:
    name = random.choice(QUEUES)
    if random.random() < 0.25:
        return lambda ledger: ledger.drop_queue(name)
    built = a_queue(name).devices({"capability": {"gpu": {"count": random.randint(0, 5)}}})
    queue = built.child_of(random.choice(("", "org", "root"))).view()
    return lambda ledger: ledger.put_queue(queue)


def sums(ledger: Ledger, *names_of_sums: str) -> dict[str, Any]:
    """What is not empty, by queue."""
    found = {
        queue: {name: amounts for name, amounts in each.items() if amounts and name in names_of_sums}
        for queue, each in ledger.devices.book.accounts.sums().items()
    }
    return {queue: each for queue, each in found.items() if each}


GRANTED = ("allocated", "granted", "granted after asking")
ALL = (*GRANTED, "allocated or reserved", "asked for")


@pytest.mark.parametrize("linked", [False, True])
@given(random=st.randoms(use_true_random=False))
def test_once_settled_the_books_are_those_that_took_everything_in_at_once(
    random: Random, *, linked: bool
) -> None:
    """And once what is granted is settled, nobody could be let in beyond a quota for what is not."""
    settings = Settings.model_validate({"cards": {"equivalents": {"A": ["gpu"]}}} if linked else {})
    behind, at_once = Ledger(settings), Ledger(settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backlog, "_IN_ONE_STEP", 1)
        for _ in range(random.randint(5, 40)):
            happens = event(random)
            patch.setattr(backlog, "SIFTED_AT_ONCE", random.choice((0, 10**6)))
            for ledger, most in ((behind, 0), (at_once, 10**6)):
                patch.setattr(backlog, "AT_ONCE", most)
                happens(ledger)
            patch.setattr(backlog, "AT_ONCE", 0)
            settle(random, behind, at_once)
        finish(behind.settle())
        assert sums(behind, *ALL) == sums(at_once, *ALL)
        assert booked(behind) == booked(at_once)
        assert not any(f"uid-ml-p{number}" in behind.devices.book.behind for number in range(8))


def booked(ledger: Ledger) -> dict[str, Any]:
    return {each.pod.uid: (each.wants, each.chain, each.stage) for each in ledger.devices.book.bookings()}


def settle(random: Random, behind: Ledger, at_once: Ledger) -> None:
    """A part of what is left behind, or all that sums depend on."""
    if random.random() < 0.4:
        finish(behind.settle_sums())
        assert sums(behind, *GRANTED) == sums(at_once, *GRANTED)
    elif random.random() < 0.4:
        list(islice(behind.settle(), random.randint(1, 3)))
