"""What is suggested for a name that is not there: one rule for all of them."""

import pytest

from core import spelling

CARDS = ("NVIDIA-H20", "NVIDIA-H200", "NVIDIA-A100-SXM4-80GB", "Ascend910B")


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("h200", ("H200",), "H200"),
        ("nvidia-h200", CARDS, "NVIDIA-H200"),
        ("NVIDIA_H200", CARDS, "NVIDIA-H200"),
        ("nvidia h20", CARDS, "NVIDIA-H20"),
        ("NVIDIA-A1OO-SXM4", CARDS, "NVIDIA-A100-SXM4-80GB"),
        ("ASCEND910b", CARDS, "Ascend910B"),
        ("h200", CARDS, "NVIDIA-H200"),
        ("H200", ("NVIDIA-H200", "OTHER-H200"), ""),
        ("80gb", CARDS, "NVIDIA-A100-SXM4-80GB"),
        ("0", ("NVIDIA-0",), ""),
        ("tpu", CARDS, ""),
        ("", CARDS, ""),
        ("---", CARDS, ""),
        ("ß", ("x-SS",), "x-SS"),
        ("İ", CARDS, ""),
    ],
)
def test_neither_case_nor_punctuation_keeps_a_name_from_being_found(
    name: str, known: tuple[str, ...], near: str
) -> None:
    assert spelling.nearest(name, known) == near
