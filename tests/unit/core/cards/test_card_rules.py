"""The card rules of admission: what is refused, what is hinted at, and what needs the view of the nodes."""

from typing import Any

import pytest

from core import names, reasons
from core.cards import rules
from core.cards.inventory import Inventory
from core.objects.draft import Draft
from core.settings import CardSettings
from core.violations import Findings
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder

GPU = "nvidia.com/gpu"
DEFAULTS = CardSettings()
CARD_PATH = "metadata.annotations[volcano.sh/card.name]"


def nodes() -> Inventory:
    inventory = Inventory({})
    inventory.put(a_node("n1").card("NVIDIA-H200", 8).mig("1g.18gb", 3).view())
    inventory.put(a_node("n2").card("NVIDIA-H800", 8).view())
    inventory.put(a_node("n3").card("Ascend910B", 8, prefix="huawei.com/npu").view())
    return inventory


def judged(pod: PodBuilder, *, offline: bool = False, template: bool = False, **cards: Any) -> Findings:
    settings = CardSettings(**cards)
    inventory = Inventory(settings.resources) if offline else nodes()
    return found_by(Draft.of(pod.build(), "spec.template." * template), inventory, settings, offline)


def found_by(
    draft: Draft, inventory: Inventory, settings: CardSettings = DEFAULTS, offline: bool = False
) -> Findings:
    found = Findings()
    policy = settings.pods_without_card_name
    rules.judge(draft, inventory=inventory, complete=not offline, policy=policy, found=found)
    return found


def codes(findings: Findings) -> tuple[list[str], list[str]]:
    """(violations, hints)."""
    return [found.code for found in findings.violations], [found.code for found in findings.hints]


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod().card("").limit("cpu", 1),
        a_pod().card("NVIDIA-H200").gpu(2),
        a_pod().card("NVIDIA-H200").gpu(0),
        a_pod().card("NVIDIA-H200").request(GPU, 1),
        a_pod().card("NVIDIA-H200|NVIDIA-H800").gpu(2),
        a_pod().card("NVIDIA-H200/mig-1g.18gb-mixed").limit("nvidia.com/mig-1g.18gb", 1),
        a_pod().card("A/mig-1g-mixed|B/mig-1g-mixed").limit("nvidia.com/mig-1g", 1),
        a_pod().card("A/mps-80g*1/8").limit("nvidia.com/gpu.shared", 1),
        a_pod().card("NVIDIA-H200").init_container("i", limits={GPU: 1}),
    ],
)
def test_proper_pods_pass_without_a_word(pod: PodBuilder) -> None:
    assert judged(pod) == judged(pod, offline=True) == judged(pod, template=True) == Findings()


@pytest.mark.parametrize(
    ("expression", "word"),
    [("A|", "empty"), ("A | B", "white space"), ("A|A", "duplicate"), ("-A", "label"), (" ", "white space")],
)
def test_the_grammar_is_enforced_with_key_and_value(expression: str, word: str) -> None:
    findings = judged(a_pod().card(expression).gpu(1))
    assert set(codes(findings)[0]) == {reasons.CARD_NAME_MALFORMED}
    text = str(findings.violations[0])
    assert text.startswith(f'{CARD_PATH}: Invalid value: "{expression}": ')
    assert word in text


class TestAlternativesOfOneResource:
    @pytest.mark.parametrize(
        ("expression", "resource"),
        [
            ("NVIDIA-H200|Ascend910B", GPU),
            ("NVIDIA-H200|Ascend910B|Unknown", GPU),
            ("NVIDIA-H200|NVIDIA-H200/mig-1g.18gb-mixed", GPU),
            ("NVIDIA-H200|NVIDIA-H200/mps-80g*1/8", GPU),
        ],
    )
    def test_known_alternatives_must_agree(self, expression: str, resource: str) -> None:
        findings = judged(a_pod().card(expression).limit(resource, 1))
        assert codes(findings)[0] == [reasons.CARD_RESOURCES_DIFFER]
        assert "NVIDIA-H200 needs nvidia.com/gpu" in str(findings.violations[0])

    @pytest.mark.parametrize(
        "expression",
        [
            "A/mig-1g-mixed|A/mig-2g-mixed",
            "A/mig-1g-mixed|A/mps-80g*1/8",
            "NVIDIA-GeForce-RTX-4090|NVIDIA-H20/mig-1g.24gb-mixed",
            "A/mps-80g*1/8|B",
        ],
    )
    def test_what_follows_from_the_names_is_refused_without_any_view(self, expression: str) -> None:
        pod = a_pod().card(expression).gpu(1)
        assert codes(judged(pod, offline=True)) == ([reasons.CARD_RESOURCES_DIFFER], [])

    @pytest.mark.parametrize(
        "expression", ["NVIDIA-H200|Ascend910B", "A|B", "A|B/vgpu-1", "A/mig-1g-mixed|B/vgpu-1"]
    )
    def test_what_needs_the_nodes_is_left_out_without_the_view(self, expression: str) -> None:
        assert judged(a_pod().card(expression), offline=True).violations == []

    def test_settings_name_resources_without_any_view(self) -> None:
        pod = a_pod().card("A|B").limit("v.com/a", 1)
        findings = judged(pod, offline=True, resources={"A": "v.com/a", "B": "v.com/b"})
        assert codes(findings) == ([reasons.CARD_RESOURCES_DIFFER], [])

    def test_an_override_may_serve_a_whole_card_by_a_share_s_resource(self) -> None:
        pod = a_pod().card("A|A/mps-80g*1/8").limit(names.MPS_RESOURCE, 1)
        assert judged(pod, offline=True, resources={"A": names.MPS_RESOURCE}).violations == []


class TestMissingResource:
    @pytest.mark.parametrize(
        ("expression", "resource"),
        [
            ("NVIDIA-H200", GPU),
            ("NVIDIA-H200|NVIDIA-H800", GPU),
            ("Ascend910B", "huawei.com/npu"),
            ("X/mig-1g-mixed", "nvidia.com/mig-1g"),
        ],
    )
    def test_the_pod_must_ask_for_the_card_s_resource(self, expression: str, resource: str) -> None:
        findings = judged(a_pod().card(expression).limit("cpu", 1))
        assert codes(findings) == ([reasons.CARD_RESOURCE_MISSING], [])
        text = str(findings.violations[0])
        assert text.startswith("spec.containers: Required value: card ")
        assert resource in text

    def test_a_share_is_judged_without_any_view_and_a_whole_card_is_not(self) -> None:
        assert codes(judged(a_pod().card("X/mig-1g-mixed"), offline=True))[0] == [
            reasons.CARD_RESOURCE_MISSING
        ]
        assert judged(a_pod().card("NVIDIA-H200"), offline=True) == Findings()

    def test_an_unknown_alternative_leaves_the_question_open(self) -> None:
        assert judged(a_pod().card("NVIDIA-H200|Unknown")).violations == []

    def test_an_unreadable_amount_is_named_where_it_stands(self) -> None:
        pod = a_pod().card("NVIDIA-H200").gpu("two").gpu(1, container="c2")
        findings = judged(pod, template=True)
        assert [found.path for found in findings.violations] == [
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"
        ]
        assert '"two"' in str(findings.violations[0])

    def test_one_of_several_resources_is_enough(self) -> None:
        inventory = nodes()
        inventory.put(a_node("n9").card("NVIDIA-H200", 1, prefix="other.com/gpu").view())
        for resource in (GPU, "other.com/gpu"):
            raw = a_pod().card("NVIDIA-H200").limit(resource, 1).build()
            assert found_by(Draft.of(raw), inventory) == Findings()


class TestHints:
    def test_an_unknown_card_is_admitted_with_a_hint_and_a_suggestion(self) -> None:
        findings = judged(a_pod().card("NVIDIA-H2000").gpu(1))
        assert codes(findings) == ([], [reasons.CARD_UNKNOWN])
        assert "did you mean NVIDIA-H200?" in str(findings.hints[0])
        assert str(judged(a_pod().card("Q").gpu(1)).hints[0]).endswith('no node carries the card "Q" now')

    def test_without_the_view_no_card_is_unknown(self) -> None:
        assert judged(a_pod().card("NVIDIA-H2000").gpu(1), offline=True) == Findings()

    def test_a_share_is_never_unknown(self) -> None:
        assert judged(a_pod().card("Q/mig-1g-mixed").limit("nvidia.com/mig-1g", 1)) == Findings()

    def test_a_share_of_an_unknown_kind_is_admitted_with_a_hint(self) -> None:
        findings = judged(a_pod().card("NVIDIA-H200/vgpu-4"), offline=True)
        assert codes(findings) == ([], [reasons.CARD_NAME_MALFORMED])

    def test_the_misprint_of_the_annotation_is_pointed_out(self) -> None:
        findings = judged(a_pod().annotation(names.CARD_NAME_MISPRINT, "NVIDIA-H200"))
        assert codes(findings) == ([], [reasons.CARD_NAME_MISSPELT])
        assert names.CARD_NAME_ANNOTATION in str(findings.hints[0])

    def test_every_hint_is_one_line(self) -> None:
        findings = judged(a_pod().card("Q|R/x").annotation(names.CARD_NAME_MISPRINT, "a\nb"))
        assert len(findings.hints) == 4
        assert all("\n" not in str(hint) for hint in findings.hints)


class TestPodsWithoutCardName:
    @pytest.mark.parametrize(
        "resource",
        [GPU, "huawei.com/npu", "nvidia.com/mig-1g.18gb", "nvidia.com/mig-9g", "nvidia.com/gpu.shared"],
    )
    def test_they_escape_the_quota_so_they_are_warned_about(self, resource: str) -> None:
        findings = judged(a_pod().limit(resource, 1))
        assert codes(findings) == ([], [reasons.CARD_NAME_MISSING])
        assert resource in str(findings.hints[0])

    def test_the_limit_counts_whatever_the_request_says(self) -> None:
        assert codes(judged(a_pod().gpu(1).request(GPU, 0)))[1] == [reasons.CARD_NAME_MISSING]

    def test_cards_to_choose_from_are_named(self) -> None:
        assert "such as NVIDIA-H200, NVIDIA-H800" in str(judged(a_pod().gpu(1)).hints[0])

    def test_the_setting_may_deny_or_ignore_them(self) -> None:
        denied = judged(a_pod().gpu(1), pods_without_card_name="deny")
        assert codes(denied) == ([reasons.CARD_NAME_MISSING], [])
        assert str(denied.violations[0]).startswith(f"{CARD_PATH}: Required value: {GPU} is asked for")
        assert judged(a_pod().gpu(1), pods_without_card_name="ignore") == Findings()

    @pytest.mark.parametrize(
        "pod", [a_pod().gpu(0), a_pod().limit("rdma/hca", 1), a_pod().gpu(1).mirror(), a_pod().mgpu(core=10)]
    )
    def test_other_pods_are_left_alone(self, pod: PodBuilder) -> None:
        assert judged(pod, pods_without_card_name="deny") == Findings()

    def test_without_the_view_only_shares_and_settings_tell_for_certain_what_a_card_is(self) -> None:
        """What else is called like one is warned about, and never refused."""
        shared = a_pod().limit("nvidia.com/gpu.shared", 1)
        for pod, resources in ((a_pod().gpu(1), {"A": GPU}), (shared, {}), (a_pod().gpu(1), {})):
            assert codes(judged(pod, offline=True, resources=resources)) == ([], [reasons.CARD_NAME_MISSING])
            certain = resources or pod is shared
            denied = codes(judged(pod, offline=True, resources=resources, pods_without_card_name="deny"))
            missing = [reasons.CARD_NAME_MISSING]
            assert denied == ((missing, []) if certain else ([], missing))
        ignored = judged(a_pod().gpu(1), offline=True, pods_without_card_name="ignore")
        assert ignored == Findings()

    @pytest.mark.parametrize("resource", ["cambricon.com/mlu", "example.com/xpu", "amd.com/gpu"])
    def test_accelerators_of_which_no_node_shows_a_card_are_warned_about(self, resource: str) -> None:
        """The nodes are known, and none of them says which card it is."""
        for policy in ("warn", "deny", "infer"):
            found = judged(a_pod().limit(resource, 1), pods_without_card_name=policy)
            assert codes(found) == ([], [reasons.CARD_NAME_MISSING]), policy


class TestCardsBesideTheNamedOne:
    """One card is charged; what a pod asks for besides is counted by no card quota."""

    @pytest.mark.parametrize(
        "resource", ["huawei.com/npu", "nvidia.com/mig-1g.18gb", "nvidia.com/gpu.shared"]
    )
    def test_they_are_treated_like_cards_without_a_name(self, resource: str) -> None:
        pod = a_pod().card("NVIDIA-H200").gpu(1).limit(resource, 1)
        findings = judged(pod)
        assert codes(findings) == ([], [reasons.CARD_NAME_MISSING])
        assert f"{resource} is asked for beside the card that is named" in str(findings.hints[0])
        assert codes(judged(pod, pods_without_card_name="deny")) == ([reasons.CARD_NAME_MISSING], [])
        assert judged(pod, pods_without_card_name="ignore") == Findings()

    def test_a_share_s_resource_is_not_covered_by_its_product(self) -> None:
        pod = a_pod().card("NVIDIA-H200/mig-1g.18gb-mixed").limit("nvidia.com/mig-1g.18gb", 1).gpu(1)
        assert codes(judged(pod, pods_without_card_name="deny")) == ([reasons.CARD_NAME_MISSING], [])

    def test_an_alternative_that_nobody_knows_hides_nothing(self) -> None:
        """All alternatives are served by one resource, and that of the known one is decided."""
        pod = a_pod().card("NVIDIA-H200|ZZZ").gpu(1).limit("nvidia.com/mig-1g.18gb", 7)
        assert codes(judged(pod, pods_without_card_name="deny"))[0] == [reasons.CARD_NAME_MISSING]

    def test_where_none_is_known_one_resource_may_be_its_own_and_no_second(self) -> None:
        pod = a_pod().card("Q").gpu(1).limit("nvidia.com/mig-1g.18gb", 7)
        assert codes(judged(pod, pods_without_card_name="deny"))[0] == [reasons.CARD_NAME_MISSING]

    def test_two_cards_without_a_name_cannot_be_inferred(self) -> None:
        pod = a_pod().gpu(1).limit("nvidia.com/mig-1g.18gb", 7)
        assert codes(judged(pod, pods_without_card_name="infer")) == ([reasons.CARD_NAME_MISSING], [])
        assert judged(a_pod().gpu(1), pods_without_card_name="infer") == Findings()

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod().card("NVIDIA-H200").gpu(1).limit("huawei.com/npu", 0),
            a_pod().card("NVIDIA-H200").gpu(1).limit("rdma/hca", 1),
            a_pod().card("Q").limit("huawei.com/npu", 1),
            a_pod().card("NVIDIA-H200").gpu(1).limit("huawei.com/npu", 1).mirror(),
        ],
        ids=["none of it", "no card", "a card that no node shows: it may be its own", "a static pod"],
    )
    def test_otherwise_nothing_is_said_of_it(self, pod: PodBuilder) -> None:
        findings = judged(pod, pods_without_card_name="deny")
        assert reasons.CARD_NAME_MISSING not in (*codes(findings)[0], *codes(findings)[1])


class TestPresets:
    def test_a_card_pod_with_a_node_name_is_refused(self) -> None:
        findings = judged(a_pod().card("NVIDIA-H200").gpu(1).put("spec", "nodeName", value="n1"))
        assert codes(findings) == ([reasons.NODE_NAME_PRESET], [])
        assert str(findings.violations[0]).startswith('spec.nodeName: Forbidden: "n1": ')

    @pytest.mark.parametrize(
        ("pod", "template"),
        [
            (a_pod().card("NVIDIA-H200").gpu(1).mirror(), False),
            (a_pod().card("NVIDIA-H200").gpu(1), True),
            (a_pod().limit("cpu", 1), False),
        ],
        ids=["mirror pod", "template", "no card"],
    )
    def test_others_may_have_one(self, pod: PodBuilder, *, template: bool) -> None:
        assert judged(pod.put("spec", "nodeName", value="n1"), template=template) == Findings()

    @pytest.mark.parametrize("template", [False, True])
    @pytest.mark.parametrize("pod", [a_pod(), a_pod().card("NVIDIA-H200").gpu(1)], ids=["no card", "card"])
    def test_the_record_of_an_assignment_cannot_be_brought_along(
        self, pod: PodBuilder, *, template: bool
    ) -> None:
        findings = judged(pod.assigned({"NVIDIA-H200": 1}), template=template)
        assert codes(findings) == ([reasons.RECORD_PROTECTED], [])
        assert names.ASSIGNED_ANNOTATION in str(findings.violations[0])


def test_all_that_is_wrong_is_said_at_once_with_the_template_s_path() -> None:
    pod = a_pod().card("NVIDIA-H200|Ascend910B").gpu(1).assigned({"A": 1}).put("spec", "nodeName", value="n")
    record, differ = reasons.RECORD_PROTECTED, reasons.CARD_RESOURCES_DIFFER
    assert codes(judged(pod))[0] == [record, reasons.NODE_NAME_PRESET, differ]
    findings = judged(pod, template=True)
    assert codes(findings)[0] == [record, differ]
    assert all(found.path.startswith("spec.template.") for found in findings.violations)
