"""Settings in the plugins' own spelling: read like our own, and refused where the two contradict each other."""

from fractions import Fraction

import pytest

from core.settings import parse
from tests.unit.core.settings_documents import problems, value_at


class TestAliases:
    @pytest.mark.parametrize(
        ("key", "written", "path", "value"),
        [
            ("cardUnlimitedCpuMemory", True, "cards.unlimited_cpu_memory", True),
            ("predicate.MGPUEnable", False, "features.mgpu", False),
            ("predicate.MGPUPolicy", "Spread", "mgpu.policy", "spread"),
            ("predicate.MGPUWeightOfCore", 30, "mgpu.weight_of_core", 30),
            ("predicate.MGPUScheduleMode", "index", "mgpu.schedule_mode", "index"),
            ("predicate.MGPUMaxContainersPerCard", 8, "mgpu.max_containers_per_card", 8),
            (
                "gpu-resource-names",
                "nvidia.com/gpu, a",
                "cross_quota.gpu_resource_names",
                ("nvidia.com/gpu", "a"),
            ),
            ("quota-resources", "cpu,memory", "cross_quota.quota_resources", ("cpu", "memory")),
            ("quota.cpu", "32", "cross_quota.quota", {"cpu": Fraction(32)}),
            ("quota.example.com/foo", 4, "cross_quota.quota", {"example.com/foo": Fraction(4)}),
            ("quota-percentage.memory", "50", "cross_quota.quota_percentage", {"memory": Fraction(50)}),
            ("crossQuotaWeight", 7, "cross_quota.weight", 7),
            ("weight.memory", 5, "cross_quota.weights", {"cpu": 10, "memory": 5}),
            (
                "label-selector",
                {"matchLabels": {"a": "b"}},
                "cross_quota.label_selector",
                {"matchLabels": {"a": "b"}},
            ),
        ],
    )
    def test_the_plugins_own_spelling_is_read(
        self, key: str, written: object, path: str, value: object
    ) -> None:
        settings, warnings = parse({key: written})
        assert value_at(settings, path) == value
        assert warnings == []

    @pytest.mark.parametrize(
        "document",
        [
            {"predicate.MGPUPolicy": "Binpack", "mgpu": {"policy": "binpack"}},
            {"quota.cpu": "32", "crossQuota": {"quota": {"cpu": 32, "memory": "1Gi"}}},
            {"gpu-resource-names": "a, b", "crossQuota": {"gpuResourceNames": ["a", "b"]}},
            {"cardUnlimitedCpuMemory": True, "cards": {"unlimitedCpuMemory": True}},
        ],
    )
    def test_alias_and_own_key_may_say_the_same(self, document: object) -> None:
        parse(document)

    @pytest.mark.parametrize(
        ("document", "line"),
        [
            (
                {"predicate.MGPUPolicy": "spread", "mgpu": {"policy": "binpack"}},
                "predicate.MGPUPolicy: contradicts mgpu.policy",
            ),
            (
                {"quota.cpu": 1, "crossQuota": {"quota": {"cpu": 2}}},
                "quota.cpu: contradicts crossQuota.quota.cpu",
            ),
            (
                {"weight.cpu": 1, "crossQuota": {"weights": {"cpu": 10}}},
                "weight.cpu: contradicts crossQuota.weights.cpu",
            ),
            (
                {"predicate.MGPUEnable": False, "features": {"mgpu": True}},
                "predicate.MGPUEnable: contradicts features.mgpu",
            ),
        ],
    )
    def test_alias_and_own_key_that_differ_are_refused(self, document: object, line: str) -> None:
        assert any(problem.startswith(line) for problem in problems(document))

    def test_keys_without_effect_are_accepted_with_a_line_for_the_log(self) -> None:
        settings, warnings = parse(
            {"predicate.MGPUMaxContainersNumPolicyValid": 5, "predicate.MGPUScheduleMode": "id"}
        )
        assert settings.mgpu.schedule_mode == "id"
        assert warnings == [
            "mgpu.scheduleMode: id acts like index",
            "predicate.MGPUMaxContainersNumPolicyValid: has no effect",
        ]

    def test_an_alias_into_a_section_that_is_no_mapping_names_the_section(self) -> None:
        assert problems({"quota.cpu": 1, "crossQuota": 3}) == ("crossQuota: must be a mapping, not 3",)
