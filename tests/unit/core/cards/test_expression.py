"""The grammar of card names and of the expressions made of them."""

import pytest

from core.cards import expression

LONGEST = "A" * 63


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA-H200",
        "A",
        "a.b_c-d",
        "910B",
        LONGEST,
        "NVIDIA-GeForce-RTX-4090|NVIDIA-GeForce-RTX-4090-D",
        "NVIDIA-A100-80GB/mps-80g*1/8",
        "NIVIDIA-H20/mps-0g*1/1",
        "NVIDIA-H200/mig-1g.18gb-mixed",
        "NVIDIA-H200/mig-1-mixed",
        "NVIDIA-H20/mig-1g.24gb-mixed|NVIDIA-H200/mig-1g.24gb-mixed",
        "A|B|C|D",
    ],
)
def test_names_and_expressions_within_the_grammar(text: str) -> None:
    assert expression.expression_errors(text) == []
    assert expression.reserved(text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty card name"),
        ("A|", "empty alternative"),
        ("|A", "empty alternative"),
        ("A||B", "empty alternative"),
        ("|", "empty alternative"),
        ("A | B", "white space"),
        (" A", "white space"),
        ("A\n", "white space"),
        ("A\u00a0B", "white space"),
        ("A|A", "duplicate"),
        ("A|B|A", "duplicate"),
        ("-A", "node label"),
        ("A-", "node label"),
        ("A,B", "node label"),
        ("A&B", "node label"),
        ("卡", "node label"),
        (LONGEST + "A", "node label"),
        ("/mps-80g*1/8", "node label"),
        ("A/", "share"),
        ("A/\x01", "share"),
        ("A/mps-80g*1/0", "MPS"),
        ("A/mps-80g*1/08", "MPS"),
        ("A/mps-g*1/8", "MPS"),
        ("A/mps-80g*2/8", "MPS"),
        ("A/mps-80g*1", "MPS"),
        ("A/mps-80g*1/8/9", "MPS"),
        ("A/mps-\u0668g*1/8", "share"),
        ("A/mig-1g.18gb", "MIG"),
        ("A/ts-140g/4", "time-slice"),
        ("A/vnpu-x", "vNPU"),
        ("A/mig--mixed", "MIG"),
        ("A/mig-1g.-mixed", "MIG"),
        ("A/mig-1g/2g-mixed", "MIG"),
    ],
)
def test_what_can_never_match_is_refused_with_the_reason(text: str, why: str) -> None:
    errors = expression.expression_errors(text)
    assert errors
    assert any(why in error for error in errors)


def test_every_bad_alternative_is_named_once() -> None:
    assert len(expression.expression_errors("A B|-C|-C|D")) == 3


@pytest.mark.parametrize("text", ["A/vgpu-4", "nvidia.com/gpu", "A/migx", "A/x/y"])
def test_a_share_of_a_kind_not_known_yet_is_reserved(text: str) -> None:
    assert expression.expression_errors(text) == []
    assert expression.reserved(f"B|{text}") == [text]


@pytest.mark.parametrize(
    ("card", "resources"),
    [
        ("NVIDIA-A100-80GB/mps-80g*1/8", {"nvidia.com/gpu.shared"}),
        ("NVIDIA-H200/mig-1g.18gb-mixed", {"nvidia.com/mig-1g.18gb"}),
        ("NVIDIA-H200/mig-a-mixed-mixed", {"nvidia.com/mig-a-mixed"}),
        ("NVIDIA-H200/ts-140g*1/4", {"nvidia.com/gpu", "nvidia.com/gpu.shared"}),
        ("AMD_Instinct_MI300X_OAM/cpx_nps4", {"amd.com/gpu", "amd.com/cpx_nps4"}),
    ],
)
def test_the_resource_of_a_share_follows_from_its_name(card: str, resources: set[str]) -> None:
    assert expression.resources_by_name(card) == resources
    assert expression.is_share(card)
    assert expression.expression_errors(card) == []


def test_of_a_vnpu_only_nodes_tell_the_resource() -> None:
    assert expression.is_share("310P3/vnpu-4c.3cpu")
    assert expression.resources_by_name("310P3/vnpu-4c.3cpu") == frozenset()


@pytest.mark.parametrize(
    "card",
    [
        "NVIDIA-H200",
        "A/mps-80g*1/0",
        "A/mig-1g",
        "A B/mig-1g-mixed",
        "/mig-1g-mixed",
        "A/vgpu-4",
        "A/ts-4",
        "",
    ],
)
def test_other_names_are_no_shares(card: str) -> None:
    assert expression.resources_by_name(card) == frozenset()
    assert not expression.is_share(card)


@pytest.mark.parametrize(
    ("resource", "share"),
    [
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/cpx_nps4", True),
        ("amd.com/spx_nps1", False),
        ("huawei.com/Ascend310P-2c.1cpu", True),
        ("huawei.com/Ascend910-16c", True),
        ("huawei.com/npu-12c", True),
        ("huawei.com/Ascend910", False),
        ("huawei.com/Ascend910-memory", False),
        ("nvidia.com/gpu", False),
    ],
)
def test_some_resources_stand_for_shares_alone(resource: str, *, share: bool) -> None:
    assert expression.stands_for_share(resource) is share


SIXTEEN = "|".join(f"C{number}" for number in range(16))


@pytest.mark.parametrize(
    ("text", "taken_apart"),
    [(SIXTEEN, True), (f"{SIXTEEN}|D", False), ("A" * 4096, True), ("A" * 4097, False), ("|" * 16, False)],
)
def test_what_is_beyond_the_limits_is_not_taken_apart(text: str, taken_apart: bool) -> None:
    assert expression.is_excessive(text) is not taken_apart
    assert expression.split(text) == (expression.every_alternative(text) if taken_apart else ())


class Endless(str):
    """An expression that nobody may look at."""

    __slots__ = ()

    def split(self, *_: object) -> list[str]:
        raise AssertionError

    count = find = index = partition = __iter__ = __contains__ = split  # type: ignore[assignment]


def test_a_long_expression_costs_nothing() -> None:
    endless = Endless("|".join(f"C{number}" for number in range(37_000)))
    assert expression.is_excessive(endless)
    assert expression.split(endless) == ()
    with pytest.raises(AssertionError):
        expression.every_alternative(endless)


def test_alternatives_come_as_they_stand_from_left_to_right() -> None:
    assert expression.split("B|A") == ("B", "A")
    assert expression.split("A") == ("A",)
    assert expression.split("A|") == ("A", "")
    assert expression.split("") == ()
