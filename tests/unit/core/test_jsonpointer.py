"""JSON pointers."""

import pytest

from core import jsonpointer


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ((), ""),
        (("spec", "gates", 0, "name"), "/spec/gates/0/name"),
        (("annotations", "cardquota.io/assigned"), "/annotations/cardquota.io~1assigned"),
        (("a/b~c",), "/a~1b~0c"),
        # Unescaped in the wrong order this would become a slash.
        (("~1",), "/~01"),
        (("",), "/"),
    ],
)
def test_a_pointer_names_the_path_and_is_read_back(path: tuple[str | int, ...], pointer: str) -> None:
    assert jsonpointer.render(*path) == pointer
    assert jsonpointer.parse(pointer) == tuple(map(str, path))
