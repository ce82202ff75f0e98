"""Settings: what is right is read exactly, what is wrong is named with its path, all of it at once."""

import pytest
from pydantic import ValidationError

from core.settings import CardSettings, Settings, parse, render
from tests.unit.core.settings_documents import problems, value_at


class TestDefaults:
    @pytest.mark.parametrize("document", [None, {}, {"cards": None, "schedulerNames": None}])
    def test_an_empty_document_is_all_defaults(self, document: object) -> None:
        assert parse(document) == (Settings(), [])

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("features.cards", True),
            ("features.mgpu", True),
            ("features.dra", True),
            ("features.cross_quota", True),
            ("features.gates", True),
            ("features.extender", True),
            ("cards.unlimited_cpu_memory", False),
            ("cards.unset_cpu_memory", "cluster"),
            ("cards.multi_card_job", "spread"),
            ("cards.pods_without_card_name", "warn"),
            ("cards.resources", {}),
            ("cards.pools", {}),
            ("discovery", ()),
            ("mgpu.policy", "binpack"),
            ("mgpu.weight_of_core", 20),
            ("mgpu.schedule_mode", "index"),
            ("mgpu.max_containers_per_card", 16),
            ("mgpu.min_normal_memory", 256),
            ("mgpu.min_multi_memory", 256),
            ("mgpu.lead_to", "nodes"),
            ("mgpu.node_agents", ()),
            ("dra.hierarchy", True),
            ("dra.unlisted_dimension", "allow"),
            ("dra.count_admin_access", False),
            ("dra.queue_crd", "extend"),
            ("cross_quota.gpu_resource_names", ()),
            ("cross_quota.quota_resources", ("cpu",)),
            ("cross_quota.quota", {}),
            ("cross_quota.quota_percentage", {}),
            ("cross_quota.weight", 10),
            ("cross_quota.weights", {"cpu": 10, "memory": 1}),
            ("cross_quota.label_selector", None),
            ("cross_quota.guard_bind", False),
            ("queue.default", "default"),
            ("quota.max_free_grace_s", 300),
            ("webhook.client_ca", None),
            ("gates.wait_for_us", ()),
            ("volcano.scheduler_names", ("volcano",)),
            ("reservation.warn_after_s", 600),
            ("reservation.evict_after_s", None),
            ("extender.max_body_bytes", 16 * 2**20),
            ("scheduler_names", ("volcano", "default-scheduler")),
        ],
    )
    def test_every_documented_default(self, path: str, value: object) -> None:
        assert value_at(Settings(), path) == value

    def test_settings_cannot_be_changed(self) -> None:
        with pytest.raises(ValidationError):
            Settings().cards.multi_card_job = "uniform"

    def test_python_code_names_sections_and_keys_in_its_own_way(self) -> None:
        settings = Settings(cards=CardSettings(unlimited_cpu_memory=True))
        assert parse({"cards": {"unlimitedCpuMemory": True}})[0] == settings

    def test_a_rendered_document_reads_back_to_the_same_settings(self) -> None:
        document = {
            "cards": {"resources": {"NVIDIA-H200": "nvidia.com/gpu"}, "podsWithoutCardName": "deny"},
            "reservation": {"warnAfter": "1h30m5s", "evictAfter": "2h"},
            "quota": {"maxFreeGrace": "90s"},
            "gates": {"waitForUs": ["example.com/licence"]},
            "volcano": {"schedulerNames": []},
            "crossQuota": {
                "gpuResourceNames": ["nvidia.com/gpu{1,2}"],
                "quota": {"cpu": "1500m", "memory": "10Gi", "x": "1n"},
                "quotaPercentage": {"cpu": "12.5", "pods": 100},
            },
            "extender": {"maxBodyBytes": "8Mi"},
        }
        settings, warnings = parse(document)
        assert warnings == []
        assert parse(render(settings)) == (settings, [])
        assert parse(render(Settings())) == (Settings(), [])


class TestMistakes:
    @pytest.mark.parametrize(
        ("document", "line"),
        [
            ([], "must be a mapping of sections, not []"),
            ("cards", 'must be a mapping of sections, not "cards"'),
            ({"card": {}}, "card: is no setting; did you mean cards?"),
            ({"zzz": None}, "zzz: is no setting"),
            ({5: 6}, "5: must be text, not 5"),
            ({"cards": 3}, "cards: must be a mapping, not 3"),
            (
                {"cards": {"multiCardJobs": "x"}},
                "cards.multiCardJobs: is no setting; did you mean multiCardJob?",
            ),
            (
                {"cards": {"multi_card_job": "spread"}},
                "cards.multi_card_job: is no setting; did you mean multiCardJob?",
            ),
            (
                {"cards": {"multiCardJob": "mixed"}},
                "cards.multiCardJob: must be 'spread' or 'uniform', not \"mixed\"",
            ),
            (
                {"cards": {"multiCardTask": "uniform"}},
                "cards.multiCardTask: must be 'spread' or 'single', not \"uniform\"",
            ),
            (
                {"cards": {"resources": {"A": "gpu"}}},
                "cards.resources.A: must be an extended resource, such as",
            ),
            (
                {"cards": {"resources": {"A/x": "v.com/gpu"}}},
                "cards.resources.A/x: must be the product of a whole",
            ),
            (
                {"cards": {"pools": {"A|B": {"labels": {"a": "b"}, "resource": "v.com/gpu"}}}},
                "cards.pools.A|B: must be the name of a card",
            ),
            (
                {"cards": {"pools": {"A": {"labels": {}, "resource": "v.com/gpu"}}}},
                "cards.pools.A.labels: ",
            ),
            (
                {"cards": {"pools": {"A": {"labels": {"a/b/c": "x"}, "resource": "v.com/gpu"}}}},
                "cards.pools.A.labels.a/b/c: must be the key of a label",
            ),
            (
                {"discovery": [{"vendor": "V", "product": "v.com/gpu.model", "resources": ["gpu"]}]},
                "discovery.0.resources.0: must be an extended resource",
            ),
            ({"features": {"cards": "yes"}}, 'features.cards: must be true or false, not "yes"'),
            ({"features": {"cards": 1}}, "features.cards: must be true or false, not 1"),
            ({"mgpu": {"weightOfCore": "20"}}, 'mgpu.weightOfCore: must be a whole number, not "20"'),
            ({"mgpu": {"weightOfCore": True}}, "mgpu.weightOfCore: must be a whole number, not true"),
            ({"mgpu": {"weightOfCore": 20.0}}, "mgpu.weightOfCore: must be a whole number, not 20.0"),
            (
                {"mgpu": {"weightOfCore": 101}},
                "mgpu.weightOfCore: must be less than or equal to 100, not 101",
            ),
            ({"mgpu": {"weightOfCore": -1}}, "mgpu.weightOfCore: must be greater than or equal to 0, not -1"),
            (
                {"mgpu": {"maxContainersPerCard": 0}},
                "mgpu.maxContainersPerCard: must be greater than or equal to 1",
            ),
            ({"mgpu": {"policy": "pack"}}, "mgpu.policy: must be 'binpack' or 'spread', not"),
            ({"mgpu": {"scheduleMode": "uuid"}}, "mgpu.scheduleMode: must be 'index' or 'id'"),
            ({"mgpu": {"minNormalMemory": 0}}, "mgpu.minNormalMemory: must be greater than or equal to 1"),
            ({"dra": {"queueCrd": "extend"}}, "dra.queueCrd: is no setting; did you mean queueCRD?"),
            ({"schedulerNames": []}, "schedulerNames: must not be empty"),
            ({"schedulerNames": [""]}, "schedulerNames: must hold names without surrounding blanks"),
            (
                {"reservation": {"warnAfter": "soon"}},
                "reservation.warnAfter: must be a duration, such as 90s",
            ),
            ({"reservation": {"warnAfter": ""}}, "reservation.warnAfter: must be a duration"),
            (
                {"reservation": {"warnAfter": 600}},
                "reservation.warnAfter: must be a duration with its unit, such as 90s, 10m or 1h30m, not 600",
            ),
            ({"quota": {"maxFreeGrace": "600"}}, "quota.maxFreeGrace: must be a duration"),
            (
                {"reservation": {"evictAfter": "0s"}},
                "reservation.evictAfter: must be greater than or equal to 1",
            ),
            ({"reservation": {"warnAfter": True}}, "reservation.warnAfter: must be a whole number, not true"),
            ({"extender": {"maxBodyBytes": "big"}}, "extender.maxBodyBytes: must be a quantity"),
            (
                {"extender": {"maxBodyBytes": 10}},
                "extender.maxBodyBytes: must be greater than or equal to 1024",
            ),
            ({"queue": {"default": "Team A"}}, "queue.default: must be the name of an object"),
            ({"crossQuota": {"quota": [1]}}, "crossQuota.quota: must be a mapping, not [1]"),
            ({"crossQuota": {"guardBind": "true"}}, "crossQuota.guardBind: must be true or false"),
            ({"predicate.MGPUEnable": "true"}, "features.mgpu: must be true or false"),
            ({"predicate.MGPUWeightOfCore": 150}, "mgpu.weightOfCore: must be less than or equal to 100"),
            ({"quota.": 1}, "quota.: is no setting"),
        ],
    )
    def test_a_wrong_key_or_value_is_named_with_its_path(self, document: object, line: str) -> None:
        (problem,) = problems(document)
        assert problem.startswith(line)

    def test_all_mistakes_are_listed_at_once(self) -> None:
        found = problems(
            {"cards": {"x": 1}, "mgpu": {"weightOfCore": "a"}, "y": 2}, {"CARDQUOTA_DRA__Z": "1"}
        )
        assert [line.split(":")[0] for line in found] == [
            "CARDQUOTA_DRA__Z",
            "cards.x",
            "mgpu.weightOfCore",
            "y",
        ]

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("90s", 90), ("10m", 600), ("1h30m5s", 5405), ("2h", 7200), (" 5m ", 300)],
    )
    def test_durations_are_seconds(self, text: object, seconds: int) -> None:
        assert parse({"reservation": {"warnAfter": text}})[0].reservation.warn_after_s == seconds


class TestClientAuthority:
    PEM = "-----BEGIN CERTIFICATE-----\nMIIB\nAA==\n-----END CERTIFICATE-----\n"

    def test_certificates_are_taken_as_they_are(self) -> None:
        settings, _ = parse({"webhook": {"clientCA": self.PEM * 2}})
        assert settings.webhook.required_ca == self.PEM.encode() * 2
        assert parse(render(settings))[0] == settings

    @pytest.mark.parametrize(
        "text", ["", "/etc/ca.crt", PEM.replace("CERTIFICATE", "PRIVATE KEY"), PEM + "x"]
    )
    def test_anything_else_is_refused(self, text: str) -> None:
        (problem,) = problems({"webhook": {"clientCA": text}})
        assert problem.startswith("webhook.clientCA: must be certificates as PEM, and nothing else, not ")


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variable", "text", "path", "value"),
        [
            ("CARDQUOTA_CARDS__MULTI_CARD_JOB", "uniform", "cards.multi_card_job", "uniform"),
            ("CARDQUOTA_CARDS__MULTICARDJOB", "uniform", "cards.multi_card_job", "uniform"),
            ("CARDQUOTA_FEATURES__CROSS_QUOTA", "false", "features.cross_quota", False),
            ("CARDQUOTA_MGPU__WEIGHT_OF_CORE", "30", "mgpu.weight_of_core", 30),
            ("CARDQUOTA_DRA__QUEUE_CRD", "leave", "dra.queue_crd", "leave"),
            ("CARDQUOTA_QUEUE__DEFAULT", "123", "queue.default", "123"),
            ("CARDQUOTA_RESERVATION__WARN_AFTER", "5m", "reservation.warn_after_s", 300),
            ("CARDQUOTA_RESERVATION__EVICT_AFTER", "300s", "reservation.evict_after_s", 300),
            ("CARDQUOTA_QUOTA__MAX_FREE_GRACE", "90s", "quota.max_free_grace_s", 90),
            ("CARDQUOTA_GATES__WAIT_FOR_US", "a/b, c/d", "gates.wait_for_us", ("a/b", "c/d")),
            ("CARDQUOTA_VOLCANO__SCHEDULER_NAMES", '["v"]', "volcano.scheduler_names", ("v",)),
            ("CARDQUOTA_EXTENDER__MAX_BODY_BYTES", "1Mi", "extender.max_body_bytes", 2**20),
            ("CARDQUOTA_CARDS__RESOURCES", '{"A": "v.com/a"}', "cards.resources", {"A": "v.com/a"}),
            ("CARDQUOTA_MGPU__NODE_AGENTS", "a, b", "mgpu.node_agents", ("a", "b")),
            ("CARDQUOTA_SCHEDULER_NAMES", '["a"]', "scheduler_names", ("a",)),
        ],
    )
    def test_a_variable_sets_one_value(self, variable: str, text: str, path: str, value: object) -> None:
        assert value_at(parse(None, {variable: text})[0], path) == value

    def test_variables_win_over_the_file(self) -> None:
        document = {"mgpu": {"weightOfCore": 1}, "predicate.MGPUPolicy": "spread"}
        settings, _ = parse(
            document, {"CARDQUOTA_MGPU__WEIGHT_OF_CORE": "2", "CARDQUOTA_MGPU__POLICY": "binpack"}
        )
        assert (settings.mgpu.weight_of_core, settings.mgpu.policy) == (2, "binpack")

    def test_a_variable_that_names_no_setting_is_refused(self) -> None:
        assert problems(None, {"CARDQUOTA_CARDS__COLOUR": "x"}) == (
            "CARDQUOTA_CARDS__COLOUR: names no setting",
        )

    def test_what_kubernetes_sets_for_a_service_of_our_name_is_not_ours(self) -> None:
        variables = {
            "CARDQUOTA_SERVICE_HOST": "10.0.0.1",
            "CARDQUOTA_PORT": "tcp://10.0.0.1:443",
            "CARDQUOTA_PORT_443_TCP_ADDR": "10.0.0.1",
            "CARDQUOTA_WEBHOOK_SERVICE_PORT": "443",
            "PATH": "/bin",
        }
        assert parse(None, variables) == (Settings(), [])

    def test_a_bad_value_is_named_with_its_path(self) -> None:
        (line,) = problems(None, {"CARDQUOTA_MGPU__WEIGHT_OF_CORE": "lots"})
        assert line.startswith("mgpu.weightOfCore: must be a whole number")
