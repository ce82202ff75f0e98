"""The status page in a real browser: nothing goes wrong, it fits, it can be read, and keys are enough."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cli.page_server import PageServer
from core.page.view import View, Wish
from tests.browser.chromium import Tab, contrast, installed, tab
from tests.unit.core.page.test_html import ATTACKS
from tests.unit.core.page.views import empty, filled

TAB, ENTER = ("Tab", 9), ("Enter", 13)
FOCUSED = """(() => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
  return {kind: e.tagName, text: e.textContent || e.name || e.id, outline: s.outlineStyle + ' ' + s.outlineWidth,
    seen: r.width > 0 && r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight}; })()"""


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    installed()


@asynccontextmanager
async def opened(folder: Path, view: View, *, width: int = 1280, dark: bool = False) -> AsyncIterator[Tab]:
    """A tab with the page of this view."""

    async def pages(_wish: Wish) -> View:
        return view

    async with PageServer(pages, 0) as server, tab(folder) as found:
        await found.open(server.url, width=width, dark=dark)
        assert found.asked() == [server.url], "the page loads something else"
        yield found


@pytest.mark.parametrize("view", [empty(), filled(rows=50)], ids=["empty", "full"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_nothing_goes_wrong_and_all_text_has_contrast(tmp_path: Path, view: View, dark: bool) -> None:
    async with opened(tmp_path, view, dark=dark) as page:
        assert page.faults() == []
        back = await page.value("getComputedStyle(document.body).backgroundColor")
        assert (contrast(back, "rgb(0, 0, 0)") < 2) == dark
        colours = await page.value(
            "[...new Set([...document.querySelectorAll('h1, p, a, th, td, .note, .told, .state, label, footer')]"
            ".map(e => getComputedStyle(e).color))]"
        )
        assert colours
        assert {colour for colour in colours if contrast(back, colour) < 4.5} == set()


@pytest.mark.parametrize("attack", ATTACKS[:5])
async def test_markup_of_objects_does_nothing(tmp_path: Path, attack: str) -> None:
    async with opened(tmp_path, filled(attack)) as page:
        assert page.faults() == []
        assert attack in await page.value("document.querySelector('#queues').textContent")
        assert await page.value("document.scripts.length") == 1


async def test_it_has_the_policy_that_lets_nothing_else_run(tmp_path: Path) -> None:
    """What would be run if text ever became markup is stopped by the browser."""
    async with opened(tmp_path, empty()) as page:
        await page.value(
            "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
            " const d = document.createElement('div'); d.innerHTML = '<img src=x onerror=\"window.ran = 2\">';"
            " document.body.append(d); })()"
        )
        assert await page.value("window.ran === undefined") is True
        assert await page.value("fetch('/').then(() => 'sent', () => 'stopped')") == "stopped"


@pytest.mark.parametrize("width", [320, 360, 768])
async def test_on_a_narrow_screen_cells_stand_below_each_other_and_nobody_scrolls_sideways(
    tmp_path: Path, width: int
) -> None:
    async with opened(tmp_path, filled("a-name-of-forty-letters-without-any-break"), width=width) as page:
        assert await page.value("document.documentElement.scrollWidth") <= width
        narrowest = "Math.min(...[...document.querySelectorAll('tbody td')].map(one => one.clientWidth))"
        assert await page.value(narrowest) > width * 0.8
        assert page.faults() == []


@pytest.mark.parametrize("width", [900, 1024, 1040, 1280])
async def test_nobody_scrolls_sideways_on_a_screen_of_any_width(tmp_path: Path, width: int) -> None:
    """Also where cells stand beside each other for the first time."""
    async with opened(tmp_path, filled("a-name-of-forty-letters-without-any-break"), width=width) as page:
        assert await page.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 1280])
async def test_readers_of_a_screen_have_landmarks_and_tables(tmp_path: Path, width: int) -> None:
    async with opened(tmp_path, filled("train"), width=width) as page:
        tree = (await page.call("Accessibility.getFullAXTree"))["nodes"]
    roles = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]
    ]
    kinds = [role for role, _ in roles]
    assert {"banner", "main", "contentinfo", "search"} <= set(kinds)
    titles = {"Queues", "Waiting pods", "Nodes", "The last hour", "Card-hours"}
    assert titles <= {name for role, name in roles if role == "region"}
    assert kinds.count("table") == 6
    assert ("rowheader", "train") in roles
    assert ("columnheader", "In use") in roles
    assert [name for role, name in roles if role in {"textbox", "searchbox"}] == [
        "Queue, pod, reason or node",
        "Namespace of pods",
    ]


async def test_keys_reach_everything_and_show_where_they_are(tmp_path: Path) -> None:
    async with opened(tmp_path, filled("train", rows=2)) as page:
        await page.press(*TAB)
        first = await page.value(FOCUSED)
        assert (first["text"], first["seen"]) == ("To the tables", True)
        await page.press(*ENTER, text="\r")
        assert await page.value("document.activeElement.id") == "main"
        await page.value("document.activeElement.blur()")
        await page.value("scrollTo(0, 0)")
        count = await page.value(
            "[...document.querySelectorAll('a, input:not([type=hidden]), button, [tabindex=\"0\"]')].length"
        )
        reached = []
        for _ in range(count + 2):
            await page.press(*TAB)
            found = await page.value(FOCUSED)
            if found["kind"] not in {"BODY", "HTML"}:
                assert found["outline"] == "solid 3px", found
                reached.append(await page.value("document.activeElement.outerHTML"))
        assert len(set(reached)) >= count - 1


async def test_who_wants_it_loaded_anew_says_so_once(tmp_path: Path) -> None:
    async with opened(tmp_path, empty()) as page:
        assert (
            await page.value("getComputedStyle(document.getElementById('again').parentElement).display")
            == "flex"
        )
        assert await page.value("document.getElementById('again').checked") is False
        await page.value("document.getElementById('again').click()")
        page.events.clear()
        await page.call("Page.reload")
        await page.until("Page.loadEventFired")
        assert await page.value("document.getElementById('again').checked") is True
        assert page.faults() == []


async def test_it_is_painted_at_once_and_as_large_as_its_rows(tmp_path: Path) -> None:
    """No time is asserted: on a machine with other work that would say nothing. There is nothing to wait for but the page itself."""
    async with opened(tmp_path, filled(rows=50)) as page:
        paint = "new PerformanceObserver(l => l.getEntries().some(e => e.name == 'first-contentful-paint') && done(true))"
        assert await page.value(f"new Promise(done => {paint}.observe({{type: 'paint', buffered: true}}))")
        assert await page.value("performance.getEntriesByType('resource').length") == 0
        assert await page.value("document.querySelectorAll('*').length") < 6_000
