"""What somebody may have meant by a name that is not there: one rule, whatever the name is of.

Capital letters and punctuation are what is mistaken most often and what tells least, so neither counts.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

_CLOSE: Final = 0.6
_BETWEEN: Final = re.compile(r"[\W_]+")
_SHORTEST: Final = 2
"""Letters; a shorter name is the end of too many."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, or the only one whose last words it is; empty where there is none."""
    there = list(known)
    plain = _plain(name)
    same = next((one for one in there if _plain(one) == plain), "") if plain else ""
    if same or len(plain) < _SHORTEST:
        return same or alike(name, there)
    ending = [one for one in there if _ends_with(_words(one), plain)]
    if ending:
        # `NVIDIA-H200` for `h200`, unless there are several like that.
        return ending[0] if len(ending) == 1 else ""
    return alike(name, there)


def alike(name: str, known: Iterable[str], cutoff: float = _CLOSE) -> str:
    """The known name that is spelt most like this one, as a whole; `cutoff`, 0 to 1, is how much alike they have to be."""
    plain = _plain(name)
    spelt: dict[str, str] = {}
    for one in known:
        spelt.setdefault(_plain(one), one)
    if not plain:
        return ""
    found = difflib.get_close_matches(plain, spelt, n=1, cutoff=cutoff)
    return spelt[found[0]] if found else ""


def _ends_with(words: list[str], plain: str) -> bool:
    return any("".join(words[first:]) == plain for first in range(1, len(words)))


def _plain(name: str) -> str:
    return "".join(_words(name))


def _words(name: str) -> list[str]:
    return [word for word in _BETWEEN.split(name.casefold()) if word]
