"""The result annotations."""

import pytest

from core import names
from core.mgpu import records
from tests.builders import a_pod


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("0", (0,)),
        ("0,2", (0, 2)),
        ("2,0", (0, 2)),
        ("1,1,1", (1,)),
        (" 1 , 2 ", (1, 2)),
        ("007", (7,)),
        ("", None),
        (" ", None),
        ("1,", None),
        (",1", None),
        ("1 2", None),
        ("-1", None),
        ("+1", None),
        ("1.0", None),
        ("a", None),
        ("1_0", None),
        ("\u0661", None),
        ("[1]", None),
        ("1" * 10, None),
        ("1," * 40_000 + "1", None),
    ],
)
def test_reading(text: str, cards: tuple[int, ...] | None) -> None:
    """Any order, duplicates and blanks are read; anything else is no record."""
    assert records.parse(text) == cards


def test_writing() -> None:
    """Ascending, each number once, no blanks, with the marker."""
    assert records.annotations({"c1": (2, 0, 2), "c2": (1,)}) == {
        "vke.volcengine.com/gpu-index-container-c1": "0,2",
        "vke.volcengine.com/gpu-index-container-c2": "1",
        "vke.volcengine.com/assumed": "true",
    }


def test_the_longest_key_has_63_characters() -> None:
    """The limit of names follows from the limit of annotation keys."""
    key = records.key("c" * names.MGPU_CONTAINER_NAME_MAX)
    assert len(key.partition("/")[2]) == 63


def test_only_asking_containers_have_records() -> None:
    """What is written for other containers, or cannot be read, is left out."""
    pod = (
        a_pod()
        .mgpu(core=50, memory=1024)
        .mgpu("b", core=50, memory=1024)
        .container("c")
        .annotation(records.key("main"), "1")
        .annotation(records.key("b"), "?")
        .annotation(records.key("c"), "2")
        .annotation(records.key("d"), "3")
    )
    assert records.recorded(pod.view()) == {"main": (1,)}
