"""Label selectors as text: what `kubectl -l` reads, and the labels that are selected."""

import pytest

from core import label_selector
from core.label_selector import MAX_LENGTH, MAX_REQUIREMENTS, Requirement, SelectorError, is_key, is_value

GOLD = {"tier": "gold", "env": "dev", "example.com/size": "12", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        (" \t\n", True),
        ("tier", True),
        ("!tier", False),
        ("missing", False),
        ("!missing", True),
        ("! missing", True),
        ("tier=gold", True),
        ("tier==gold", True),
        ("tier = gold", True),
        ("tier=silver", False),
        ("missing=gold", False),
        ("tier!=gold", False),
        ("tier!=silver", True),
        ("missing!=gold", True),
        ("tier in (gold, silver)", True),
        ("tier in (gold)", True),
        ("tier in(silver,gold,gold)", True),
        ("tier in (silver)", False),
        ("missing in (silver)", False),
        ("tier notin (silver, iron)", True),
        ("tier notin (gold)", False),
        ("missing notin (gold)", True),
        ("tier=gold,env=dev", True),
        ("tier=gold , env in (test, dev) , !missing", True),
        ("tier=gold,env=test", False),
        ("example.com/size>11", True),
        ("example.com/size > 12", False),
        ("example.com/size<13", True),
        ("tier>1", False),
        ("missing<1", False),
        ("empty=", True),
        ("empty=,tier", True),
        ("tier=", False),
        ("empty in (,a)", True),
        ("empty in (a,)", True),
        ("tier in (a,,gold)", True),
        ("empty notin (,a)", False),
        ("in in (in)", False),
        ("notin", False),
    ],
)
def test_what_a_selector_selects(text: str, selected: bool) -> None:
    assert label_selector.parse(text).selects(GOLD) is selected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",", '"," is no label key'),
        ("tier,", "ends with a comma"),
        ("tier,,env", '"," is no label key'),
        ("=gold", '"=" is no label key'),
        ("!", "ends where a label key is expected"),
        ("!tier=gold", '"=" stands where a comma or the end is expected'),
        ("tier gold", '"gold" stands after "tier"'),
        ("tier=gold silver", '"silver" stands where a comma or the end is expected'),
        ("tier=a=b", '"=" stands where a comma or the end is expected'),
        ("tier==", ""),
        ("tier===x", '"=" stands where a value is expected'),
        ("tier=(gold)", '"(" stands where a value is expected'),
        ("tier in gold", "values in parentheses"),
        ("tier in", "values in parentheses"),
        ("tier in ()", "at least one value"),
        ("tier in (gold", "ends within a list of values"),
        ("tier in (gold silver)", '"silver" stands in a list of values'),
        ("tier in (gold,(", '"(" stands where a value is expected'),
        ("tier in (", "ends too early"),
        ("tier IN (gold)", '"IN" stands after "tier"'),
        ("-tier", '"-tier" is no label key'),
        ("a/b/c", '"a/b/c" is no label key'),
        ("/tier", '"/tier" is no label key'),
        ("Example.com/tier", "is no label key"),
        ("tier=-gold", '"-gold" is no label value'),
        ("tier in (gold, 金)", "is no label value"),
        ("stufe=größe", "is no label value"),
        ("größe", "is no label key"),
        (f"tier={'x' * 64}", "is no label value"),
        ("tier>high", '"high" is no integer'),
        ("tier>", '"" is no integer'),
        ("tier\u00a0=gold", "is no label key"),
        ("x" * (MAX_LENGTH + 1), f"at most {MAX_LENGTH} are read"),
        (",".join(["a"] * (MAX_REQUIREMENTS + 1)), f"at most {MAX_REQUIREMENTS} are read"),
    ],
)
def test_what_is_no_selector_says_why(text: str, said: str) -> None:
    if not said:
        assert label_selector.parse(text).requirements == (Requirement("tier", "In", frozenset({""})),)
        return
    with pytest.raises(SelectorError) as error:
        label_selector.parse(text)
    assert said in str(error.value)
    assert len(str(error.value)) < 400, "a long text is not repeated as a whole"


def test_as_many_requirements_as_are_allowed_are_read() -> None:
    assert len(label_selector.parse(",".join(["a"] * MAX_REQUIREMENTS)).requirements) == MAX_REQUIREMENTS


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("a", True),
        ("A.b_c-D", True),
        ("example.com/a", True),
        (f"{'p' * 253}/a", True),
        (f"{'p' * 254}/a", False),
        ("n" * 63, True),
        ("n" * 64, False),
        ("", False),
        ("a.", False),
        (3, False),
        (None, False),
    ],
)
def test_a_key_is_one_that_a_label_may_have(key: object, valid: bool) -> None:
    assert is_key(key) is valid


@pytest.mark.parametrize(
    ("value", "valid"), [("", True), ("a.b", True), ("-a", False), (3, False), ("a b", False)]
)
def test_a_value_is_one_that_a_label_may_have(value: object, valid: bool) -> None:
    assert is_value(value) is valid
