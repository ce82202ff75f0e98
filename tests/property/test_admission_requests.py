"""Whatever is asked for any kind: the short way through the house says what the long one would."""

from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from core.admission import shapes
from core.admission.dispatch import PATHS, answer, review
from core.admission.request import AdmissionRequest, Context
from core.objects.draft import Draft
from core.objects.pod_resources import aggregate
from core.settings import Settings
from kube.admission import wire
from tests.property.admission_objects import (
    CONTROLLER,
    breaks,
    broken,
    closed_view,
    requests,
    templates,
    view,
)
from tests.unit.core.admission.samples import patched

SCENES = (
    (view(), Settings()),
    (closed_view(), Settings.model_validate({"cards": {"pods_without_card_name": "infer"}})),
    (
        view(),
        Settings.model_validate({"cards": {"pods_without_card_name": "deny"}, "queue": {"access": "listed"}}),
    ),
)
CONTROLLERS = frozenset({CONTROLLER})


@given(requests(), st.sampled_from(SCENES))
def test_the_rule_of_a_path_answers_as_all_its_rules_together(request: AdmissionRequest, scene: Any) -> None:
    """A path calls one rule; `review` asks all of them."""
    seen, settings = scene
    context = Context(seen, settings, CONTROLLERS)
    for rules in PATHS.values():
        for rule in rules:
            if (rule.group, rule.resource) == (request.group, request.resource):
                decision = answer(request, context, rule)
                assert decision == review(request, seen, settings, controllers=CONTROLLERS, rules=rules)
                assert all(line.isprintable() and len(line) <= 256 for line in decision.warnings)
                assert decision.denial is None or (decision.denial.violations and not decision.patch)
                # A copy is none of the answers that were encoded beforehand.
                assert wire.encode('u"', decision) == wire.encode('u"', replace(decision))
                assert orjson.loads(wire.encode('u"', decision))["response"]["uid"] == 'u"'


@given(requests(tuple(rule for rule in PATHS["/mutate/pods"])), st.sampled_from(SCENES))
def test_a_patched_pod_is_not_patched_again(request: AdmissionRequest, scene: Any) -> None:
    context, (rule,) = Context(*scene), PATHS["/mutate/pods"]
    patch = answer(request, context, rule).patch
    if patch:
        again = replace(request, object=patched(request.object, patch))
        assert answer(again, context, rule).patch == ()


@given(templates, breaks)
def test_what_is_gathered_in_one_walk_is_what_is_there(good: Any, replaced: Any) -> None:
    for raw in (good, broken(good, replaced)):
        draft, spec = Draft.of(raw), raw.get("spec")
        assert draft.typed == (not shapes.pod(raw))
        if isinstance(spec, dict):
            assert draft.limits == aggregate(spec, "limits")
            assert draft.requests == aggregate(spec, "requests")
