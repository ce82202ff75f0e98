"""The page as HTML: nothing that objects say is markup, and everybody can read it."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.page.html.document import HEADERS
from core.page.html.marks import Markup, age, tag, text
from core.page.view import CardRow, Extent, KeyRow, NodeRow, Nodes, QueueRow, Queues, Wish
from tests.unit.core.page.views import empty, filled, parsed, written

ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "&lt;b&gt;",
    "javascript:alert(1)",
    "]]><!-- --!>",
)
PARTS = ("queues", "waiting", "nodes", "changes", "hours")


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_in_any_field_is_shown_as_the_text_that_it_is(attack: str) -> None:
    plain, attacked = parsed(written(filled("name"))), parsed(written(filled(attack)))
    assert [one.kind for one in attacked.all()] == [one.kind for one in plain.all()]
    assert [sorted(one.attributes) for one in attacked.all()] == [
        sorted(one.attributes) for one in plain.all()
    ]
    assert attacked.text.count(attack) == plain.text.replace("namespace", "").replace("Namespace", "").count(
        "name"
    )
    assert [one.attributes["value"] for one in attacked.all("input") if "value" in one.attributes] == [
        attack
    ] * 3


@given(st.text(min_size=1, max_size=40))
def test_no_text_changes_the_structure(words: str) -> None:
    shape = [one.kind for one in parsed(written(filled("name"))).all()]
    assert [one.kind for one in parsed(written(filled(words))).all()] == shape


def test_what_would_turn_or_hide_text_is_written_out() -> None:
    assert text("a\u202eb\x00c\n") == "a\\u202eb\\x00c\\n"


def test_only_markup_is_put_in_as_it_is() -> None:
    assert tag("p", "<b>", Markup("<i></i>"), title='"') == '<p title="&quot;">&lt;b&gt;<i></i></p>'
    assert tag("input", hidden=True, disabled=False, data_x=1) == '<input hidden data-x="1">'


def test_nothing_but_its_own_style_and_script_may_run_and_nothing_is_loaded() -> None:
    page = parsed(written(filled()))
    policy = HEADERS["Content-Security-Policy"]
    for kind in ("style", "script"):
        (one,) = page.all(kind)
        digest = base64.b64encode(hashlib.sha256(one.text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
        assert not one.attributes
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    for one in page.all():
        assert not {name for name in one.attributes if name.startswith("on")} | one.attributes.keys() & {
            "style",
            "src",
        }
        assert one.kind not in {"img", "iframe", "object"}
        assert one.attributes.get("href", "?")[0] in "?#" or one.attributes == {
            "rel": "icon",
            "href": "data:,",
        }
    assert "url(" not in page.all("style")[0].text
    assert "@import" not in page.all("style")[0].text


def test_each_table_has_a_caption_and_headers_that_say_what_they_are_about() -> None:
    page = parsed(written(filled(rows=3)))
    tables = page.all("table")
    assert len(tables) == len(PARTS) + 1, "the last hour has one of pods and one of quotas"
    for table in tables:
        assert table.all("caption")[0].text
        columns = table.all("thead")[0].all("th")
        assert {one.attributes["scope"] for one in columns} == {"col"}
        for body in table.all("tbody"):
            assert body.all("th"), "no row says what it is about"
            assert {one.attributes["scope"] for one in body.all("th")} <= {"row", "rowgroup"}
        roles = {"table": "table", "tr": "row", "td": "cell", "thead": "rowgroup", "tbody": "rowgroup"}
        assert table.attributes["role"] == "table"
        assert all(one.attributes.get("role") == roles[one.kind] for one in table.all() if one.kind in roles)


def test_rows_are_as_wide_as_the_header() -> None:
    for table in parsed(written(filled(rows=2))).all("table"):
        columns = len(table.all("thead")[0].all("th"))
        for body in table.all("tbody"):
            spanned = 0
            for row in body.all("tr"):
                cells = [one for one in row.inside if one.kind in {"td", "th"}]
                width = sum(int(one.attributes.get("colspan", 1)) for one in cells)
                assert width + (1 if spanned else 0) == columns
                spanned = max(0, spanned - 1) or max(
                    int(one.attributes.get("rowspan", 1)) - 1 for one in cells
                )


def test_its_parts_are_landmarks_by_their_titles_and_can_be_jumped_to() -> None:
    page = parsed(written(filled()))
    sections = page.all("section")
    titles = {one.attributes["id"]: one.text for one in page.all("h2")}
    assert tuple(one.attributes["id"] for one in sections) == PARTS
    assert all(titles[one.attributes["aria-labelledby"]] for one in sections)
    assert (len(page.all("h1")), len(page.all("main")), len(page.all("header"))) == (1, 1, 1)
    assert page.all("html")[0].attributes["lang"] == "en"
    ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    targets = [one.attributes["href"] for one in page.all("a") if one.attributes["href"].startswith("#")]
    assert targets[0] == "#main"
    assert {target[1:] for target in targets} <= set(ids)
    for one in page.all("input"):
        assert one.attributes.get("type") == "hidden" or one in [
            x for label in page.all("label") for x in label.all()
        ]


def test_what_a_bar_shows_stands_beside_it_in_words() -> None:
    page = parsed(written(filled()))
    assert all(one.attributes["aria-hidden"] == "true" for one in page.all("svg"))
    words = [one.text for one in page.all("span") if one.attributes.get("class") == "told"]
    assert words == [
        "2 of 4, 1 reserved",
        "1, no quota",
        "3 of 8",
        "30 of 100 hundredths, 1024 of 8192 MiB",
    ]


@pytest.mark.parametrize(
    ("row", "bars", "told"),
    [
        (KeyRow("A", "4", "2", "1", "0"), [("used", 0, 50), ("reserved", 50, 25)], "2 of 4, 1 reserved"),
        (KeyRow("A", "1000", "1", "0", "0"), [("used", 0, 1)], "1 of 1000"),
        (KeyRow("A", "0", "0", "0", "5"), [("used", 0, 0)], "0 of 0"),
        (KeyRow("A", "2", "2", "1", "0"), [("over", 0, 100)], "2 of 2, 1 reserved: more than the quota"),
        (KeyRow("A", "0", "1", "0", "0"), [("over", 0, 100)], "1 of 0: more than the quota"),
        (KeyRow("A", "", "1", "0", "0"), [], "1, no quota"),
        (KeyRow("A", "rubbish", "1", "0", "0"), [("over", 0, 100)], "1 of rubbish: more than the quota"),
    ],
)
def test_bars(row: KeyRow, bars: list[tuple[str, int, int]], told: str) -> None:
    view = replace(
        empty(), queues=Queues((QueueRow("q", "Open", 0, "", (row,)),), Extent(0, 1), subtrees=False)
    )
    page = parsed(written(view))
    drawn = [
        (one.attributes["class"], int(one.attributes.get("x", 0)), int(one.attributes["width"]))
        for one in page.all("rect")
        if one.attributes["class"] != "track"
    ]
    assert drawn == bars
    assert told in page.text


@pytest.mark.parametrize(
    ("quota", "told"),
    [
        ("1", "and 1,234 more; cardquota queues has them all"),
        ("", "and 1,234 more, which have no quota here; cardquota queues has them all"),
    ],
)
def test_what_is_cut_of_a_queue_and_of_a_node_is_told(quota: str, told: str) -> None:
    rows = (QueueRow("q", "Open", 0, "", (KeyRow("A", quota, "1", "0", "0"),), more=1234),)
    nodes = Nodes((NodeRow("n", (CardRow("A", 1, 8),), (), more=3),), Extent(0, 1))
    view = replace(empty(), queues=Queues(rows, Extent(0, 1), subtrees=False), nodes=nodes)
    page = parsed(written(view))
    assert told in page.text
    assert "and 3 more; cardquota gpus has them all" in page.text


def test_of_nothing_each_part_says_so() -> None:
    page = parsed(written(empty()))
    assert not page.all("table")
    for words in (
        "There is no queue.",
        "No pod waits.",
        "There is no node with cards.",
        "Nothing has changed.",
    ):
        assert words in page.text
    found = parsed(written(replace(empty(), wish=Wish(find="x"))))
    assert "No queue is called so." in found.text


def test_it_says_when_it_was_so_where_anybody_knows() -> None:
    assert "As of 2027-01-15 08:00:00 UTC. " in parsed(written(empty())).text
    assert "1970" not in parsed(written(replace(empty(), taken=0))).text


def test_what_may_not_be_seen_is_not_there_and_the_note_says_why() -> None:
    view = replace(
        filled(), queues=None, waiting=None, nodes=None, changes=None, hours=None, notes=("No rights.",)
    )
    page = parsed(written(view))
    assert not page.all("section")
    assert "No rights." in page.text


def test_a_page_of_many_says_which_it_shows_and_leads_to_the_others() -> None:
    view = filled(rows=25)
    assert view.queues is not None
    middle = replace(
        view, queues=replace(view.queues, extent=Extent(25, 110)), wish=Wish(find="a&b", queues=2)
    )
    page = parsed(written(middle))
    (pager,) = [one for one in page.all("nav") if one.attributes["aria-label"] == "Pages of queues"]
    assert "26 to 50 of 110" in pager.text
    assert [(one.text, one.attributes["href"]) for one in pager.all("a")] == [
        ("Previous queues", "?find=a%26b#queues"),
        ("Next queues", "?find=a%26b&queues=3#queues"),
    ]
    assert not [one for one in parsed(written(view)).all("nav") if "Pages" in one.attributes["aria-label"]]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3_661, "1 h 1 min"), (90_000, "1 d 1 h")],
)
def test_ages(seconds: int, words: str) -> None:
    assert age(seconds) == words


def test_the_script_leaves_no_way_for_text_to_become_code() -> None:
    (script,) = parsed(written(filled())).all("script")
    assert not re.search(r"innerHTML|outerHTML|eval|Function\(|document\.write|fetch|XMLHttp", script.text)


def test_the_last_hour_says_since_when_it_knows_who_is_gone() -> None:
    def told(known: int) -> str:
        changes = filled().changes
        assert changes is not None
        page = parsed(written(replace(filled(), changes=replace(changes, known=known, since=1000))))
        (part,) = [one for one in page.all("section") if one.attributes["id"] == "changes"]
        return part.text

    assert "are not known here" in told(0)
    assert "were deleted" not in told(0)
    assert "4 were deleted" in told(500)
    assert "are known since" not in told(500)
    assert "are known since" in told(1500)
