"""The chain from a queue to the root, and what is below a queue."""

import pytest

from core.hierarchy import MAX_PARENTS, Chain, QueueTree


def tree_of(**parents: str) -> QueueTree:
    tree = QueueTree()
    for name, parent in parents.items():
        tree.put(name, parent)
    return tree


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("leaf", ("leaf", "team", "org", "root")),
        ("org", ("org", "root")),
        ("explicit", ("explicit", "root")),
        ("root", ("root",)),
        ("unknown", ("unknown", "root")),
    ],
)
def test_a_chain_ends_with_the_root_whether_that_exists_or_not(name: str, expected: tuple[str, ...]) -> None:
    parents = {"leaf": "team", "team": "org", "org": "", "explicit": "root"}
    assert tree_of(**parents).chain(name) == Chain(expected)
    assert tree_of(**parents, root="").chain(name) == Chain(expected)
    assert tree_of(**parents, root="leaf").chain(name) == Chain(expected)


@pytest.mark.parametrize(
    ("parents", "name", "reached", "problem"),
    [
        ({"a": "gone"}, "a", ("a",), "queue a has the parent gone, which does not exist"),
        ({"b": "a", "a": "gone"}, "b", ("b", "a"), "queue a has the parent gone, which does not exist"),
        ({"a": "a"}, "a", ("a",), "queue a has the parent a, which closes a circle"),
        ({"a": "b", "b": "a"}, "a", ("a", "b"), "queue b has the parent a, which closes a circle"),
        (
            {"c": "a", "a": "b", "b": "a"},
            "c",
            ("c", "a", "b"),
            "queue b has the parent a, which closes a circle",
        ),
    ],
)
def test_a_broken_chain_says_where_and_ends_with_the_root(
    parents: dict[str, str], name: str, reached: tuple[str, ...], problem: str
) -> None:
    assert tree_of(**parents).chain(name) == Chain((*reached, "root"), problem)


def test_a_chain_is_not_longer_than_it_may_be() -> None:
    parents = {f"q{number}": f"q{number - 1}" if number > 1 else "" for number in range(1, MAX_PARENTS + 2)}
    tree = tree_of(**parents)
    assert len(tree.chain(f"q{MAX_PARENTS}").queues) == MAX_PARENTS + 1
    assert tree.chain(f"q{MAX_PARENTS}").problem == ""
    assert (
        tree.chain(f"q{MAX_PARENTS + 1}").problem
        == f"queue q{MAX_PARENTS + 1} has more than 32 parents above it"
    )


def test_a_subtree_holds_everything_below_even_in_a_circle() -> None:
    tree = tree_of(a="", b="a", c="b", d="a", other="")
    assert set(tree.subtree("a")) == {"a", "b", "c", "d"}
    assert set(tree.subtree("root")) == {"root", "a", "b", "c", "d", "other"}
    assert set(tree.subtree("unknown")) == {"unknown"}
    tree.put("a", "c")
    assert set(tree.subtree("b")) == {"a", "b", "c", "d"}


def test_a_queue_that_comes_again_as_it_was_changes_nothing() -> None:
    tree = tree_of(a="")
    assert tree.put("b", "a")
    assert not tree.put("b", "a")
    assert tree.put("b", "")
    tree.drop("b")
    assert tree.put("b", "")
    assert tree.chain("b") == Chain(("b", "root"))


def test_a_queue_that_goes_leaves_its_children_without_a_chain_until_it_is_back() -> None:
    tree = tree_of(a="", b="a")
    tree.drop("a")
    tree.drop("a")
    assert tree.chain("b").problem
    assert set(tree.subtree("a")) == {"a", "b"}
    tree.put("a", "")
    assert tree.chain("b") == Chain(("b", "a", "root"))
