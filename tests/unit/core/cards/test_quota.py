"""card.quota and card.request: every row of the table of values, for admission and for what is stored already."""

import pytest

from core import reasons
from core.cards.assigned import read_assigned, render_assigned
from core.cards.quota import (
    MAX_CARDS,
    CardJsonError,
    parse_quota,
    parse_request,
    quota_findings,
    request_findings,
)
from core.violations import Findings

PATH = "metadata.annotations[volcano.sh/card.quota]"

REFUSED = [
    (" \n", "JSON"),
    ('{"A": -1}', "negative"),
    ('{"A": 1.5}', "integer"),
    ('{"A": 2.0}', "integer"),
    ('{"A": 1e3}', "integer"),
    ('{"A": "2"}', "integer"),
    ('{"A": null}', "integer"),
    ('{"A": true}', "integer"),
    ('{"A": [1]}', "integer"),
    ('["A"]', "object"),
    ('"A"', "object"),
    ("3", "object"),
    ("null", "object"),
    ('{"A": 2', "JSON"),
    ('{"A": 2} x', "JSON"),
    ('{"A": NaN}', "JSON"),
    ('{"A": Infinity}', "JSON"),
    ("{'A': 2}", "JSON"),
    ("A=2", "JSON"),
    ('{"A": 1, "A": 2}', "duplicate"),
    ('{"A": 9223372036854776}', "at most"),
    (f'{{"A": {MAX_CARDS + 1}}}', "at most"),
    ('{"A": 1e999}', "integer"),
]


def said(findings: Findings) -> str:
    return "\n".join(str(violation) for violation in findings.violations)


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("", {}),
        ("{}", {}),
        ('{"A": 2}', {"A": 2}),
        ('\n{"A": 2}\n', {"A": 2}),
        ('{"A": 0}', {"A": 0}),
        ('{"A": -0}', {"A": 0}),
        (f'{{"A": {MAX_CARDS}}}', {"A": MAX_CARDS}),
        (
            '{"A": 1, "A/mps-80g*1/8": 2, "B/mig-1g-mixed": 3}',
            {"A": 1, "A/mps-80g*1/8": 2, "B/mig-1g-mixed": 3},
        ),
    ],
)
def test_whole_numbers_of_cards_are_read(text: str, cards: dict[str, int]) -> None:
    assert parse_quota(text) == parse_request(text) == cards
    assert quota_findings(text, PATH) == request_findings(text, PATH) == Findings()


@pytest.mark.parametrize(("text", "word"), REFUSED)
def test_a_doubtful_value_is_refused_with_the_annotation_and_the_reason(text: str, word: str) -> None:
    for findings, code in (
        (quota_findings(text, PATH), reasons.CARD_QUOTA_MALFORMED),
        (request_findings(text, PATH), reasons.CARD_REQUEST_MALFORMED),
    ):
        assert word in said(findings)
        assert PATH in said(findings)
        assert {violation.code for violation in findings.violations} == {code}


@pytest.mark.parametrize(("text", "word"), REFUSED)
def test_a_doubtful_value_that_is_stored_is_no_quota_at_all(text: str, word: str) -> None:
    for parse in (parse_quota, parse_request):
        with pytest.raises(CardJsonError) as caught:
            parse(text)
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '{"NVIDIA-H200": "3"}',
            f'{PATH}[NVIDIA-H200]: Invalid value: "3": must be an integer number of cards, written without quotes',
        ),
        (
            '{"NVIDIA-H200": 3',
            (
                f'{PATH}: Invalid value: "{{\\"NVIDIA-H200\\": 3": is not valid JSON: the text ends too early '
                '(a closing bracket or quote is missing); write a JSON object, such as {"NVIDIA-H200": 8}'
            ),
        ),
    ],
)
def test_frequent_mistakes_read_well(text: str, line: str) -> None:
    assert said(quota_findings(text, PATH)) == line


def test_every_bad_entry_is_named() -> None:
    findings = quota_findings('{"A": -1, "B": 2, "C": "x", "D|E": 1}', PATH)
    assert [violation.path for violation in findings.violations] == [f"{PATH}[A]", f"{PATH}[C]", PATH]


def test_a_key_that_stands_twice_hides_no_other_mistake() -> None:
    text = '{"A": 1, "A": 2, "B": -1, "C": 1, "C|D": 1, "C": "1", "C": 3}'
    for findings in (quota_findings(text, PATH), request_findings(text, PATH)):
        lines = [str(violation) for violation in findings.violations]
        assert [line for line in lines if "duplicate" in line] == lines[:2]
        assert 'has the duplicate key "A"; write a JSON object' in lines[0]
        assert 'has the duplicate key "C"; write a JSON object' in lines[1]
        assert lines[2] == f"{PATH}[B]: Invalid value: -1: must not be negative"
    assert len(quota_findings(text, PATH).violations) == 4
    with pytest.raises(CardJsonError, match='duplicate key "A"'):
        parse_quota(text)


def test_a_key_that_cannot_stand_on_a_line_is_escaped_and_cut() -> None:
    long = "x" * 5000
    findings = quota_findings(f'{{"A\\nB": -1, "{long}": -1, "": -1}}', PATH)
    assert all("\n" not in str(violation) and len(str(violation)) < 300 for violation in findings.violations)


def test_empty_and_multiple_card_names_are_refused_in_a_quota() -> None:
    assert "empty card name" in said(quota_findings('{"": 1}', PATH))
    assert "|" in said(quota_findings('{"A|B": 1}', PATH))


def test_stored_entries_that_can_never_match_do_not_spoil_the_others() -> None:
    assert parse_quota('{"": 1, "A|B": 2, "A": 3}') == {"A": 3}
    assert parse_request('{"": 1, "A|B": 2}') == {"A|B": 2}


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "A B", "-A", "A/mps-1", "A/vgpu-4"])
def test_a_quota_key_outside_the_grammar_is_only_hinted_at(key: str) -> None:
    findings = quota_findings(f'{{"{key}": 1}}', PATH)
    assert findings.violations == []
    assert [hint.code for hint in findings.hints] == [reasons.CARD_NAME_MALFORMED]
    assert key in str(findings.hints[0])


@pytest.mark.parametrize(
    ("key", "word"),
    [("", "empty card name"), ("A|", "empty alternative"), ("A | B", "white space"), ("A|A", "duplicate")],
)
def test_keys_of_a_request_follow_the_grammar_of_expressions(key: str, word: str) -> None:
    assert request_findings('{"A|B": 1}', PATH) == Findings()
    findings = request_findings(f'{{"{key}": 1}}', PATH)
    assert word in said(findings)
    assert findings.violations[0].code == reasons.CARD_REQUEST_MALFORMED


def test_a_share_of_an_unknown_kind_in_a_request_is_hinted_at() -> None:
    findings = request_findings('{"A/vgpu-4": 1}', PATH)
    assert findings.violations == []
    assert len(findings.hints) == 1


def test_json_without_quotes_around_it_is_explained() -> None:
    assert "put the JSON in quotes" in said(quota_findings({"A": 2}, PATH))


def test_a_flood_of_mistakes_makes_a_short_reason() -> None:
    with pytest.raises(CardJsonError, match=r"and 97 more$"):
        parse_quota("{" + ", ".join(f'"A{index}": -1' for index in range(100)) + "}")


def test_the_record_of_an_assignment_reads_back() -> None:
    assert render_assigned("A", 2) == '{"A":2}'
    assert read_assigned(render_assigned("A/mps-80g*1/8", 2)) == ("A/mps-80g*1/8", 2)


@pytest.mark.parametrize(
    "text", ["", "{}", "x", "null", '{"A": -1}', '{"A": "1"}', '{"A": 1, "B": 2}', '{"": 1}']
)
def test_a_record_that_we_cannot_have_written_is_none(text: str) -> None:
    assert read_assigned(text) is None
