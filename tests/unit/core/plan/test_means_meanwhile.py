"""What a gang lacks comes free while it is looked at: it is let in as it would be had that come free before."""

from collections import Counter
from typing import Literal

import pytest

from core.objects import Pod
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from core.settings.model import CardSettings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.stepping import all_passes

MANY = 60


def user(name: str, phase: str = "Running") -> Pod:
    """One that uses what the gang lacks, until it ends."""
    pod = a_pod(name).in_queue("q").bound_to("b", phase=phase)
    if name == "cards":
        return pod.gpu(8).card("B").charged("q").assigned({"B": 8}).view()
    return pod.request("cpu", 8).view()


def alike(way: Literal["spread", "single"]) -> Ledger:
    """Sixty members want A or B. Of A two are left; of B there are as many as they want once another pod has ended."""
    ledger = Ledger(Settings(cards=CardSettings(multi_card_task=way)))
    ledger.put_node(a_node("a").card("A", 99).view())
    ledger.put_node(a_node("b").card("B", 99).view())
    ledger.put_queue(a_queue("q").cards({"A": 2, "B": MANY}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(MANY).view())
    ledger.put_pod(user("cards"))
    for number in range(MANY):
        pod = a_pod(f"m{number:02}").gpu(1).card("A|B").in_group("g").gated()
        ledger.put_pod(pod.created(f"2024-01-01T00:00:{number:02}Z").view())
    return ledger


def lifted(ledger: Ledger, name: str, pause: int) -> tuple[Counter[str], int]:
    """How many of each card were given when `name` ended at that pause, and how many pauses there were."""
    found, at = Counter[str](), 0
    for at, told in enumerate(all_passes(ledger)):
        if isinstance(told, Lift):
            found.update(told.assigned)
        if at == pause:
            ledger.put_pod(user(name, "Succeeded"))
    return found, at


@pytest.mark.parametrize("way", ["spread", "single"])
def test_a_gang_that_one_card_serves_gets_one_card_whenever_that_comes_free(
    way: Literal["spread", "single"],
) -> None:
    _, pauses = lifted(alike(way), "cards", -1)
    for pause in range(pauses):
        found, _ = lifted(alike(way), "cards", pause)
        assert found == {"B": MANY}, f"the end at pause {pause} of {pauses}"


def uneven() -> Ledger:
    """Four members ask for two cards and four for three, of ten A and ten B: it takes a second look to deal them out."""
    ledger = Ledger(Settings())
    for number in range(150):
        ledger.put_node(a_node(f"a{number:03}").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 16).view())
    ledger.put_queue(a_queue("q").cards({"A": 10, "B": 10}).capability(cpu=8).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(8).view())
    ledger.put_pod(user("cpu"))
    for number, count in enumerate((2, 2, 2, 2, 3, 3, 3, 3)):
        pod = a_pod(f"m{number}").gpu(count).request("cpu", 1).card("A|B").in_group("g").gated()
        ledger.put_pod(pod.created(f"2024-01-01T00:00:0{number}Z").view())
    return ledger


def test_a_gang_that_lacks_cpu_alone_is_let_in_whenever_that_comes_free() -> None:
    _, pauses = lifted(uneven(), "cpu", -1)
    for pause in range(pauses):
        found, _ = lifted(uneven(), "cpu", pause)
        assert found == {"A": 10, "B": 10}, f"the end at pause {pause} of {pauses}"
