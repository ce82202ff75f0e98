"""Namespaces by name and pattern."""

import time

import pytest

from core import namespace_patterns
from core.namespace_patterns import MAX_ITEM_LENGTH, MAX_ITEMS, MAX_LENGTH, PatternError


@pytest.mark.parametrize(
    ("text", "name", "meant"),
    [
        ("", "a", False),
        (" , ,", "a", False),
        ("a", "a", True),
        ("a", "b", False),
        ("a", "ab", False),
        ("a,b", "b", True),
        (" a ,\tb\n", "b", True),
        ("a,,b,", "b", True),
        ("a,a,a", "a", True),
        ("default", "default", True),
        ("*", "default", True),
        ("**", "a", True),
        ("team-*", "team-a", True),
        ("team-*", "team-", True),
        ("team-*", "team", False),
        ("team-*", "a-team-a", False),
        ("*-dev", "a-dev", True),
        ("*-dev", "a-dev-b", False),
        ("*-dev", "dev", False),
        ("*mid*", "a-mid-b", True),
        ("*mid*", "mid", True),
        ("*mid*", "mi-d", False),
        ("a*b*c", "abc", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "ac", False),
        ("a*b*c", "acb", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("ab*ba", "aba", False),
        ("ab*b*ba", "abba", False),
        ("ab*b*ba", "abbba", True),
        ("x,team-*", "team-a", True),
    ],
)
def test_which_namespaces_are_meant(text: str, name: str, meant: bool) -> None:
    assert namespace_patterns.parse(text).match(name) is meant


def names(count: int) -> str:
    return ",".join(f"n{number}" for number in range(count))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a b", '"a b" can be the name of no namespace'),
        ("a;b", '"a;b" can be'),
        ("Team-a", '"Team-a" can be'),
        ("team_a", '"team_a" can be'),
        ("team.a", '"team.a" can be'),
        ("team-?", '"team-?" can be'),
        ("-a", '"-a" can be'),
        ("a-", '"a-" can be'),
        ("*-", '"*-" can be'),
        ("größe", "can be the name of no namespace"),
        ("ﬁ", "can be the name of no namespace"),
        ("\uff11", "can be the name of no namespace"),
        ("a\u00a0", "can be the name of no namespace"),
        ('["a"]', "can be the name of no namespace"),
        ("ok,nök", '"nök" can be'),
        ("a" * (MAX_ITEM_LENGTH + 1), "no name of a namespace has more than 63"),
        (f"*{'a' * MAX_ITEM_LENGTH}", "no name of a namespace has more than 63"),
        (names(MAX_ITEMS + 1), f"at most {MAX_ITEMS} are read"),
        (" " * (MAX_LENGTH + 1), f"at most {MAX_LENGTH} are read"),
    ],
)
def test_what_names_no_namespace_says_why(text: str, said: str) -> None:
    with pytest.raises(PatternError) as error:
        namespace_patterns.parse(text)
    assert said in str(error.value)
    assert len(str(error.value)) < 400


def test_as_many_names_as_are_allowed_are_read_and_repetitions_do_not_count() -> None:
    assert namespace_patterns.parse(f"{names(MAX_ITEMS)},n1,n2").match("n255")
    assert namespace_patterns.parse("a" * MAX_ITEM_LENGTH).match("a" * MAX_ITEM_LENGTH)


def test_the_worst_list_is_compared_in_no_time() -> None:
    """A pattern of many stars against a name that nearly fits is what makes matchers go back and forth."""
    worst = ",".join(f"{'a*' * 28}b{number}" for number in range(MAX_ITEMS))
    patterns, name = namespace_patterns.parse(worst), "a" * 63
    begun = time.process_time()
    assert not any(patterns.match(name) for _ in range(20))
    assert time.process_time() - begun < 1.0
