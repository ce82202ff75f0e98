"""Settings that are never refused: a bad value is dropped, said once, and the next source applies."""

from fractions import Fraction

import pytest

from core.settings import parse


class TestForgivingValues:
    @pytest.mark.parametrize("written", ["true", 1, None, []])
    def test_unlimited_cpu_memory_is_false_unless_it_is_a_boolean(self, written: object) -> None:
        settings, warnings = parse({"cardUnlimitedCpuMemory": written})
        assert not settings.cards.unlimited_cpu_memory
        assert len(warnings) == 1
        assert warnings[0].startswith("cards.unlimitedCpuMemory: ")

    @pytest.mark.parametrize(
        ("key", "written", "path", "value"),
        [
            ("gpuResourceNames", "a,(,b", "gpu_resource_names", ("a", "b")),
            ("gpuResourceNames", ["(?=x)", "(a)\\1", "ok", 3], "gpu_resource_names", ("ok",)),
            ("quotaResources", 5, "quota_resources", ("cpu",)),
            ("quota", {"cpu": "-1", "memory": "x", "pods": True}, "quota", {}),
            ("quotaPercentage", {"a": 0, "b": -1, "c": 101, "d": "x", "e": "nan"}, "quota_percentage", {}),
            (
                "quotaPercentage",
                {"a": "50%", "b": "1_0", "c": "inf", "d": True, "e": ""},
                "quota_percentage",
                {},
            ),
            ("weight", "much", "weight", 10),
            ("weight", -1, "weight", 10),
            ("weight", True, "weight", 10),
            ("weight", float("nan"), "weight", 10),
            ("weights", {"cpu": "x", "memory": -2}, "weights", {"cpu": 10, "memory": 1}),
            ("labelSelector", "app=x", "label_selector", None),
            ("labelSelector", {"matchLabel": {}}, "label_selector", None),
            ("labelSelector", {"matchLabels": {"a": "b c"}}, "label_selector", None),
            ("labelSelector", {"matchLabels": {"/a": "b"}}, "label_selector", None),
            (
                "labelSelector",
                {"matchExpressions": [{"key": "a", "operator": "Near"}]},
                "label_selector",
                None,
            ),
            (
                "labelSelector",
                {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
                "label_selector",
                None,
            ),
            (
                "labelSelector",
                {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
                "label_selector",
                None,
            ),
        ],
    )
    def test_a_bad_crossquota_value_is_dropped_with_a_warning(
        self, key: str, written: object, path: str, value: object
    ) -> None:
        settings, warnings = parse({"crossQuota": {key: written}})
        assert getattr(settings.cross_quota, path) == value
        assert warnings
        assert all(line.startswith(f"crossQuota.{key}") for line in warnings)

    @pytest.mark.parametrize(
        ("key", "written", "path", "value"),
        [
            ("gpuResourceNames", "", "gpu_resource_names", ()),
            ("gpuResourceNames", " a , , a ", "gpu_resource_names", ("a",)),
            ("gpuResourceNames", ["x{1,2}", r"\\1"], "gpu_resource_names", ("x{1,2}", r"\\1")),
            ("quotaResources", " ", "quota_resources", ("cpu",)),
            ("quotaResources", "memory, cpu,memory", "quota_resources", ("memory", "cpu")),
            ("quotaResources", ["memory", " "], "quota_resources", ("memory",)),
            ("quotaResources", [], "quota_resources", ("cpu",)),
            (
                "quota",
                {"cpu": " 4 ", "memory": "1.5Gi", "pods": 0},
                "quota",
                {"cpu": 4, "memory": 3 * 2**29, "pods": 0},
            ),
            (
                "quotaPercentage",
                {"a": 100, "b": " 0.5 ", "c": 33.3},
                "quota_percentage",
                {"a": 100, "b": Fraction(1, 2), "c": Fraction(333, 10)},
            ),
            ("weight", "7", "weight", 7),
            ("weight", 7.9, "weight", 7),
            ("weight", 0, "weight", 0),
            ("weights", {"cpu": 0, "x": "3"}, "weights", {"cpu": 0, "memory": 1, "x": 3}),
            ("labelSelector", {}, "label_selector", {}),
        ],
    )
    def test_what_the_plugin_reads_is_read(self, key: str, written: object, path: str, value: object) -> None:
        settings, warnings = parse({"crossQuota": {key: written}})
        assert getattr(settings.cross_quota, path) == value
        assert warnings == []
