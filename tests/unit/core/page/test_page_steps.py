"""A page is made in steps between which others are served, however large the cluster: counted in calls.

A thousand calls take about half a millisecond.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.page.board import board
from core.page.html.document import document
from core.page.html.links import wish_of
from core.page.selection import EVERYTHING, KEYS, view_of
from core.page.view import View
from core.steps import Steps, finish
from tests.builders import a_node, a_queue
from tests.fakes.counted import longest_step
from tests.unit.core.page.test_selection import NOW, Scene, ago, runs, waits
from tests.unit.core.page.views import filled

IN_ONE_STEP = 5_000
COUNT = 1_500


@pytest.fixture(scope="module")
def large() -> Scene:
    """As many nodes, queues, pods that wait and pods that have just started."""
    numbers = range(COUNT)
    started = (
        runs(f"r{n}", f"n{n}").created(ago(20)).condition("PodScheduled", "True", ago(10)) for n in numbers
    )
    return Scene(
        *(a_node(f"n{n}").card("A", 1) for n in numbers),
        *(a_queue(f"q{n}").cards({"A": 0}) for n in numbers),
        *(waits(f"w{n}", queue=f"q{n % 10}") for n in numbers),
        *started,
    )


def test_the_books_are_looked_at_in_steps(large: Scene) -> None:
    assert longest_step(board(large.ledger, large.pods, large.holds, None, NOW)) < IN_ONE_STEP


@pytest.mark.parametrize("query", ["", "find=9", "namespace=ml&waiting=20"])
def test_a_page_is_chosen_in_steps(large: Scene, query: str) -> None:
    made = large.board()
    assert longest_step(view_of(made, large.ledger, wish_of(query), EVERYTHING, "books")) < IN_ONE_STEP


def many_keys() -> View:
    queue = filled().queues
    assert queue is not None
    keys = queue.rows[0].keys[:1] * KEYS
    view = filled(rows=25)
    assert view.queues is not None
    return replace(view, queues=replace(view.queues, rows=(replace(queue.rows[0], keys=keys),) * 25))


@pytest.mark.parametrize("view", [lambda: filled(rows=50), many_keys])
def test_it_is_written_in_steps(view: Callable[[], View]) -> None:
    assert longest_step(document(view())) < IN_ONE_STEP


def test_a_page_is_as_large_however_large_the_cluster_is(large: Scene) -> None:
    page = finish(document(large.view()))
    assert len(page) < 150_000
    assert "w0" in page


def test_what_goes_while_it_is_made_is_left_out(large: Scene) -> None:
    """The books change at every pause."""
    made, ledger = large.board(), large.ledger
    gone = iter(made.nodes[:20])

    def changing() -> Steps[View]:
        steps = view_of(made, ledger, wish_of(""), EVERYTHING, "books")
        while True:
            try:
                yield next(steps)
            except StopIteration as end:
                found: View = end.value
                return found
            if (name := next(gone, None)) is not None:
                ledger.drop_node(name)
                finish(ledger.settle())

    view = finish(changing())
    assert view.nodes is not None
    assert len(view.nodes.rows) < 20
