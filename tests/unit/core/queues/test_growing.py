"""Nothing that the books keep of every pod, or of every queue that pods name, is one dictionary: it would move whole when it grows."""

import gc
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType

import pytest

from core.queues.ledger import Ledger
from core.settings import Settings
from core.sharded import WHOLE
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

PODS = WHOLE + 100


def waiting(number: int) -> PodBuilder:
    return a_pod(f"p{number}").gpu(1).card("A").in_queue("q").gated()


def waiting_in_a_queue_of_its_own(number: int) -> PodBuilder:
    return a_pod(f"p{number}").gpu(1).card("A").in_queue(f"no-{number}").gated()


def running(number: int) -> PodBuilder:
    return a_pod(f"p{number}").gpu(1).card("A").assigned({"A": 1}).charged("q").bound_to(f"n{number % 100}")


def running_beside_cards(number: int) -> PodBuilder:
    return a_pod(f"p{number}").request("cpu", "1").in_queue("q").bound_to(f"n{number % 100}")


def reached(root: object) -> Iterator[object]:
    seen, left = {id(root)}, [root]
    while left:
        found = left.pop()
        yield found
        for each in gc.get_referents(found):
            if id(each) not in seen and not isinstance(each, type | ModuleType | FunctionType):
                seen.add(id(each))
                left.append(each)


@pytest.mark.parametrize("pod", [waiting, waiting_in_a_queue_of_its_own, running, running_beside_cards])
def test_no_dictionary_and_no_set_of_the_books_has_all_pods_or_all_queues(
    pod: Callable[[int], PodBuilder],
) -> None:
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("q").cards({"A": 8}).capability(cpu=100).view())
    for number in range(100):
        ledger.put_node(a_node(f"n{number}").card("A", 8).view())
    for number in range(PODS):
        ledger.put_pod(pod(number).view())
    sizes = [
        dict.__len__(each) if isinstance(each, dict) else len(each)
        for each in reached(ledger)
        if isinstance(each, dict | set)
    ]
    assert max(sizes) <= WHOLE
