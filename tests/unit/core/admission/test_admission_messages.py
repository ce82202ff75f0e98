"""Refusals and warnings: on how many lines, how long, and with what in them."""

import pytest

from core import names, reasons
from core.admission import messages
from core.violations import Findings, Hint, Violation
from tests.unit.core.admission.samples import (
    a_card_pod,
    a_pod,
    annotated,
    answer,
    changed,
    creation,
    with_fields,
)

POD = creation(a_pod())


def refusal(*violations: Violation) -> str:
    denial = messages.denial(POD, Findings([*violations]))
    assert denial is not None
    return denial.message


def test_the_first_line_names_the_object_and_the_first_thing_wrong() -> None:
    """Event tables show that line only."""
    text = refusal(
        Violation(reasons.CARD_NAME_MALFORMED, "a.b", "is wrong", value="x"),
        Violation(reasons.MGPU_CORE, "c", "is wrong too"),
    )
    assert text == (
        'Pod ml/train is refused: a.b: Invalid value: "x": is wrong;\n  c: Invalid value: is wrong too'
    )


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"name": "", "namespace": "ml"}, "Pod ml/train"),
        ({"name": "x", "namespace": "other"}, "Pod other/x"),
        ({"kind": "Queue", "object": {"metadata": {"name": "q"}}, "name": "q", "namespace": ""}, "Queue q"),
        ({"object": {"metadata": {"generateName": "t-"}}, "name": ""}, "Pod ml/t-*"),
        ({"object": {}, "name": ""}, "Pod ml/(no name)"),
        ({"object": {"metadata": {"name": 3}}, "name": ""}, "Pod ml/(no name)"),
    ],
)
def test_objects_are_named_as_far_as_they_have_a_name(changes: dict[str, object], shown: str) -> None:
    assert with_fields(POD, **changes).display == shown


def test_no_violation_is_no_denial() -> None:
    assert messages.denial(POD, Findings(hints=[Hint("X", "a", "b")])) is None


def test_a_protection_decides_the_status_of_a_mixed_refusal() -> None:
    bad = Violation(reasons.CARD_NAME_MALFORMED, "a", "b")
    record = Violation(reasons.RECORD_PROTECTED, "a", "b")
    for violations, expected in (((bad,), 400), ((record,), 403), ((bad, record), 403)):
        denial = messages.denial(POD, Findings([*violations]))
        assert denial is not None
        assert denial.status == expected
        assert denial.reason == ("BadRequest" if expected == 400 else "Forbidden")


@pytest.mark.parametrize("evil", ["\n", "\r", "\u2028", "\x00", "\x1b[31m", "\u202e", "\x85"])
def test_nothing_from_the_object_can_break_a_line(evil: str) -> None:
    """Names and keys come before their validation."""
    pod = annotated(
        a_card_pod("A||B"), **{f"cardquota.io/{evil}x": "1", names.CARD_NAME_ANNOTATION: f"A|{evil}"}
    )
    pod["metadata"]["name"] = f"a{evil}b"
    decision = answer(creation(pod))
    assert decision.denial is not None
    for line in decision.denial.message.split("\n"):
        assert line.isprintable()
    hinted = annotated(a_card_pod(), **{"volcano.sh/card.card": evil, names.CARD_NAME_ANNOTATION: "X" * 60})
    for warning in answer(creation(changed(hinted, "metadata", name=evil))).warnings:
        assert warning.isprintable()


def test_chinese_stays_readable() -> None:
    decision = answer(creation(a_card_pod("显卡|")))
    assert decision.denial is not None
    assert "显卡" in decision.denial.message


def test_lone_surrogates_can_be_encoded() -> None:
    text = refusal(Violation(reasons.MGPU_CORE, "a\ud800", "b\udfff", value="c\ud800"))
    assert text.encode()


@pytest.mark.parametrize(
    ("length", "expected"), [(0, 0), (1, 1), (255, 255), (256, 256), (257, 256), (100_000, 256)]
)
def test_warnings_have_at_most_256_characters(length: int, expected: int) -> None:
    path = "p"
    hint = Hint(reasons.CARD_UNKNOWN, path, "é" * max(0, length - len(f"{path}: ")))
    text = messages.warnings(Findings(hints=[hint]))[0]
    assert len(text) == max(expected, len(f"{path}: "))
    assert text.endswith("...") == (length > 256)


def test_a_warning_is_said_once_and_not_endlessly_many() -> None:
    same = Hint(reasons.CARD_UNKNOWN, "a", "b")
    many = [Hint(reasons.CARD_UNKNOWN, "a", str(number)) for number in range(100)]
    assert messages.warnings(Findings(hints=[same, same])) == ("a: b",)
    assert len(messages.warnings(Findings(hints=many))) == messages.WARNINGS_MAX


def test_huge_names_and_keys_do_not_make_huge_messages() -> None:
    key = "cardquota.io/" + "k" * 500_000
    pod = annotated(a_pod(), **{f"{key}{number}": "v" * 1000 for number in range(40)})
    decision = answer(with_fields(creation(pod), name="n" * 500_000))
    assert decision.denial is not None
    assert len(decision.denial.message) < 20_000
    assert "and 20 more" in decision.denial.message
