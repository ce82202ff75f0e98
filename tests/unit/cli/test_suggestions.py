"""Suggestions: the same by every command, for cards, commands and objects."""

import json

import pytest

from core.cards.inventory import Inventory
from tests.builders import a_node, a_pod
from tests.unit.cli.conftest import Run


def test_a_card_in_small_letters_is_told_the_same_everywhere(run: Run) -> None:
    """By the rule of cards, by why the pod waits, and by what would help."""
    node, pod = a_node("n").card("NVIDIA-H200", 8), a_pod("p").gpu(1).card("nvidia-h200").in_queue("q")
    inventory = Inventory({})
    inventory.put(node.view())
    assert inventory.nearest("nvidia-h200") == "NVIDIA-H200"
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q", "annotations": {"volcano.sh/card.quota": '{"NVIDIA-H200": 8}'}},
    }
    items = [node.build(), queue, pod.gated().build()]
    state = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    report = json.loads(run("explain", "ml/p", "--state", "-", "-o", "json", stdin=state).out)
    assert "did you mean <NVIDIA-H200>?" in report["message"]
    assert [step["key"] for remedy in report["help"] for step in remedy["steps"]] == ["NVIDIA-H200"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("PLAN",), "did you mean 'plan'?"),
        (("explain", "P", "--state", "-"), "did you mean p?"),
        (("queues", "--queue", "Q", "--state", "-"), "did you mean q?"),
    ],
)
def test_names_of_objects_and_commands_in_other_letters(
    run: Run, arguments: tuple[str, ...], told: str
) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    state = json.dumps({"apiVersion": "v1", "kind": "List", "items": [queue, pod]})
    outcome = run(*arguments, stdin=state)
    assert outcome.status == 2
    assert told in outcome.err
