"""JSON in annotations means exactly one thing, or is refused with the reason."""

import pytest

from core import strictjson


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ('\n{"A": 2}\n', {"A": 2}),
        ('{"A": {"A": 1}}', {"A": {"A": 1}}),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("[1, 1.0, 1e3, -0]", [1, 1.0, 1000.0, 0]),
        ("null", None),
        ("9" * 400, int("9" * 400)),
    ],
)
def test_one_json_value_is_read(text: str, value: object) -> None:
    assert strictjson.loads(text) == value


def test_whole_and_fractional_numbers_keep_their_types() -> None:
    assert [type(value) for value in strictjson.loads("[1, 1.0, 1e3, true]")] == [int, float, float, bool]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the text is blank"),
        (" \n", "the text is blank"),
        ('{"A": 3', "not valid JSON: the text ends too early"),
        ('{"A":', "not valid JSON: the text ends too early"),
        ('{"A": 3} x', "not valid JSON: Extra data at character 10"),
        ("{'A': 3}", "not valid JSON"),
        ('{"A": 3,}', "not valid JSON"),
        ('{"A": NaN}', "NaN is no JSON number"),
        ("[-Infinity]", "-Infinity is no JSON number"),
        ('{"A": 1, "A": 1}', 'duplicate key "A"'),
        ('{"B": {"A": 1, "A": 2}}', 'duplicate key "A"'),
        ('{"\\ud800": 1}', "half a surrogate pair"),
        ('{"A": "\\udfff"}', "half a surrogate pair"),
        ('"\ud800"', "half a surrogate pair"),
        ("\ufeff{}", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 401, "a number of 401 digits"),
        (" " * 262_145, "longer than 262144 characters"),
    ],
)
def test_everything_else_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(strictjson.StrictJsonError) as caught:
        strictjson.loads(text)
    assert why in str(caught.value)
