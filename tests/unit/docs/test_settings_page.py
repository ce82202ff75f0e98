"""docs/settings.md is what the model of the settings says, key by key."""

import pytest

from core.settings import Settings, parse
from core.settings.aliases import EXACT
from hack.pages.settings import PAGE, page


def test_the_page_is_the_one_that_is_made_from_the_model() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m hack.pages.settings"


def test_every_key_is_there_with_a_word_about_it() -> None:
    rows = {
        line.split(" | ")[0]: line.split(" | ")[-1] for line in page().splitlines() if line.startswith("| `")
    }
    assert [key for key, said in rows.items() if len(said) < len("Queues. |")] == []
    defaults = Settings().model_dump(by_alias=True)
    keys = {key for section in defaults.values() if isinstance(section, dict) for key in section}
    keys |= {key for key, section in defaults.items() if not isinstance(section, dict)}
    assert rows.keys() == {f"| `{key}`" for key in keys}


@pytest.mark.parametrize("flat", EXACT)
def test_every_key_of_the_plugin_is_named_beside_ours(flat: str) -> None:
    assert f"`{flat}`" in page()


def test_the_variable_in_its_introduction_is_read() -> None:
    name, value = "CARDQUOTA_CARDS__PODS_WITHOUT_CARD_NAME", "deny"
    assert f"`{name}={value}`" in page()
    assert parse({}, {name: value})[0].cards.pods_without_card_name == value
