"""What bytes are fed to, and what must hold of it whatever they are.

Each target takes bytes and returns nothing; anything that it raises is a fault. The first byte says whether the rest is
taken as it stands, or as decisions on how to edit an object.
"""

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from cli.main import main
from core import names
from core.admission import request
from core.admission.dispatch import RULES, review
from core.admission.request import NOTHING_LISTED
from core.cards.quota import CardJsonError, parse_quota, parse_request, quota_findings, request_findings
from core.crossquota.book import guest_book
from core.extender import enqueue, kube, volcano
from core.extender.cluster import Cluster
from core.extender.shapes import ShapeError
from core.objects import Group, Pod, kinds
from core.plan import offline
from core.settings import Settings, SettingsError, parse, render
from core.steps import finish
from kube import bigjson
from kube.admission import wire
from tests.adversary.jsonpatch import patched
from tests.builders.books import books_of
from tests.fuzz import seeds
from tests.fuzz.choices import Choices
from tests.fuzz.edits import edited, text_of
from tests.fuzz.quantities import quantities
from tests.property.admission_objects import AGENT, CONTROLLER, closed_view, view
from tests.unit.core.extender.asking import DATA, LIMITED

Target = Callable[[bytes], None]

_SETTINGS: Final = Settings()
_VIEWS: Final = (view(), closed_view(), NOTHING_LISTED)
_USERS: Final = ("ml-user", CONTROLLER, AGENT, "system:node:n1", "")
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")


def _bytes_or(choices: Choices, parts: tuple[Any, ...]) -> bytes:
    """The bytes as they stand, or the JSON of an edited object."""
    if choices.below(4) == 0:
        return choices.rest()
    return json.dumps(edited(choices, parts)).encode("utf-8", "surrogatepass")


# -- reviews ---------------------------------------------------------------------------------------------------------


def reviews(data: bytes) -> None:
    """A body is refused with words or answered; the answer is an AdmissionReview whose patch applies and is complete."""
    choices = Choices(data)
    if choices.below(4) == 0:
        body = choices.rest()
    else:
        body = json.dumps(_review(choices)).encode("utf-8", "surrogatepass")
    try:
        request = wire.decode(body)
    except wire.ReviewError as error:
        assert str(error)
        return
    known = choices.of(_VIEWS)
    decision = review(request, known, _SETTINGS, controllers=frozenset({CONTROLLER}))
    answer = orjson.loads(wire.encode(request.uid, decision))
    assert answer["response"]["uid"] == request.uid
    assert answer["response"]["allowed"] == (decision.denial is None)
    if decision.denial is not None:
        assert decision.denial.violations
    if decision.patch:
        stored = patched(request.object, [operation.as_json() for operation in decision.patch])
        again = _with_object(request, stored)
        assert not review(again, known, _SETTINGS, controllers=frozenset({CONTROLLER})).patch


def _with_object(request: request.AdmissionRequest, stored: Any) -> request.AdmissionRequest:
    fields = {name: getattr(request, name) for name in request.__slots__}
    return type(request)(**{**fields, "object": stored})


def _review(choices: Choices) -> Any:
    rule = choices.of(RULES)
    of_kind = tuple(one for one in seeds.ALL if one["kind"] == rule.kind) or seeds.ALL
    new, old = edited(choices, of_kind), edited(choices, of_kind)
    request = {
        "uid": "u",
        "kind": {"group": rule.group, "kind": rule.kind},
        "resource": {"group": rule.group, "resource": rule.resource},
        "subResource": choices.of(("", "", "status", "binding", "ephemeralcontainers", "resize")),
        "name": "x",
        "namespace": choices.of(("ml", "default", "")),
        "operation": choices.of(_OPERATIONS),
        "userInfo": {"username": choices.of(_USERS)},
        "object": new,
        "oldObject": old,
    }
    whole = {"apiVersion": wire.API_VERSION, "kind": wire.KIND, "request": request}
    return edited(choices, (whole,)) if choices.below(8) == 0 else whole


# -- annotations -----------------------------------------------------------------------------------------------------

_ON_PODS: Final = (
    *(names.CARD_NAME_ANNOTATION, names.QUEUE_NAME_ANNOTATION, names.GROUP_NAME_ANNOTATION),
    *(
        names.MGPU_MULTIPLE_ANNOTATION,
        names.MGPU_POLICY_KEY,
        names.GANG_NAME_ANNOTATION,
        names.GANG_SIZE_ANNOTATION,
    ),
    *(
        names.ASSIGNED_ANNOTATION,
        names.CHARGED_QUEUE_ANNOTATION,
        names.GANG_ANNOTATION,
        names.GANG_OF_ANNOTATION,
    ),
    *(
        names.CLAIMS_ANNOTATION,
        names.NODE_ANNOTATION,
        names.SHARE_CARD_ANNOTATION,
        names.NOMINATED_ANNOTATION,
    ),
    *(names.ASSUMED_ANNOTATION, f"{names.GPU_INDEX_PREFIX}c1", names.TASK_SPEC_ANNOTATION),
    names.CROSSQUOTA_STRATEGY_ANNOTATION,
)
_ON_QUEUES: Final = (
    *(names.CARD_QUOTA_ANNOTATION, names.DRA_QUOTA_ANNOTATION, names.NAMESPACES_ANNOTATION),
    *(names.NAMESPACE_SELECTOR_ANNOTATION, names.LAST_APPLIED_ANNOTATION),
)
_ON_NODES: Final = (f"{names.CROSSQUOTA_PREFIX}cpu", f"{names.CROSSQUOTA_PREFIX}cpu-percentage")
_ON_NAMESPACES: Final = (names.QUEUE_NAME_ANNOTATION, names.DEFAULT_CARD_ANNOTATION)
_ANNOTATED: Final = (
    (seeds.PODS, _ON_PODS),
    (seeds.QUEUES, _ON_QUEUES),
    (seeds.NODES, _ON_NODES),
    (seeds.OTHERS[1:2], _ON_NAMESPACES),
)
_STRICT: Final = Settings.model_validate(
    {"cards": {"hierarchy": True, "podsWithoutCardName": "infer"}, "mgpu": {"cardQuota": True}}
)


def annotations(data: bytes) -> None:
    """What of annotations cannot be read is found wrong, and a plan is made with it whether admission let it in or not."""
    choices = Choices(data)
    objects = [*seeds.NODES, *seeds.QUEUES, *seeds.OTHERS, *seeds.PODS]
    for _ in range(1 + choices.below(3)):
        some, keys = choices.of(_ANNOTATED)
        one, key, text = choices.of(some), choices.of(keys), text_of(choices)
        _judged_as_read(key, text)
        metadata = {**one["metadata"], "annotations": {**one["metadata"].get("annotations", {}), key: text}}
        objects.append({**one, "metadata": metadata})
    _planned(objects, choices.of((_SETTINGS, _STRICT)))


def _judged_as_read(key: str, text: str) -> None:
    """What cannot be read is found wrong. Not the other way: of what an older admission let in, the right parts are read."""
    if key != names.CARD_QUOTA_ANNOTATION:
        return
    for read, judge in ((parse_quota, quota_findings), (parse_request, request_findings)):
        try:
            read(text)
        except CardJsonError:
            assert judge(text, "x").violations


def _planned(objects: Sequence[Mapping[str, Any]], settings: Settings) -> None:
    """A pass over objects of an API server, later ones in the place of earlier ones."""
    by_kind = {kind.kind: kind for kind in kinds.KINDS}
    views = {(raw["kind"], raw["metadata"]["name"]): by_kind[raw["kind"]].project(raw) for raw in objects}
    found = offline.plan(
        books_of(settings, views.values()), [one for one in views.values() if isinstance(one, Pod)]
    )
    orjson.dumps({key: one.why and one.why.message for key, one in found.pods.items()})


# -- extender bodies -------------------------------------------------------------------------------------------------

_RECORDED: Final = tuple(json.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("*.json")))


def extender(data: bytes) -> None:
    """Whatever a scheduler sends is answered in JSON, or refused as no request of the protocol."""
    choices = Choices(data)
    cluster = _cluster()
    ask = choices.of(_QUESTIONS)
    try:
        body = finish(bigjson.loads(_bytes_or(choices, _RECORDED)))
        finish(bigjson.dumps(ask(body, cluster)))
    except (bigjson.JsonError, ShapeError) as error:
        assert str(error)


def _cluster() -> Cluster:
    nodes, pods = tuple(map(kinds.NODE.project, seeds.NODES)), tuple(map(kinds.POD.project, seeds.PODS))
    books = books_of(LIMITED, (*nodes, *map(kinds.QUEUE.project, seeds.QUEUES), *pods))
    return Cluster(books, guest_book(nodes, pods, LIMITED))


def _filter(body: Any, cluster: Cluster) -> Any:
    asked = kube.request_of(body)
    return finish(kube.filter_answer(asked, finish(kube.verdicts(asked, cluster))))


def _vote(body: Any, cluster: Cluster) -> Any:
    def known(asking: Group) -> Group | None:
        return asking

    return enqueue.vote_answer(finish(enqueue.vote(body, cluster.ledger, enqueue.Promises(), 0.0, known)))


_QUESTIONS: Final[tuple[Callable[[Any, Cluster], Any], ...]] = (
    _filter,
    lambda body, cluster: finish(kube.scored(kube.request_of(body), cluster)),
    lambda body, cluster: volcano.predicate_answer(finish(volcano.predicate(body, cluster))),
    lambda body, cluster: volcano.prioritize_answer(finish(volcano.scored(body, cluster))),
    _vote,
    lambda body, cluster: enqueue.overused_answer(body, cluster.ledger),
)


# -- files of the commands ---------------------------------------------------------------------------------------------

_COMMANDS: Final = (
    ("plan", "-o", "json"),
    ("queues", "-o", "json"),
    ("cards", "-o", "json"),
    ("gpus", "-o", "json"),
    ("cross", "-o", "json"),
    ("verify", "-o", "json"),
    ("explain", "pod/ml/card", "-o", "json"),
    ("place", "ml/share", "-o", "json"),
)


def states(data: bytes) -> None:
    """A state file is answered or refused in one line with a way out; what is printed as JSON is JSON."""
    choices = Choices(data)
    command = choices.of(_COMMANDS)
    if choices.below(4) == 0:
        content = choices.rest()
    else:
        whole = {"apiVersion": "v1", "kind": "List", "items": [*seeds.ALL]}
        content = json.dumps(edited(choices, (whole,))).encode("utf-8", "surrogatepass")
        if choices.below(4) == 0:
            content = b"---\n".join((content, choices.rest()))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state"
        file.write_bytes(content)
        _run(*command, "--state", str(file))


def manifests(data: bytes) -> None:
    """The same for what `check`, `can-run` and `advise` are given."""
    choices = Choices(data)
    content = _bytes_or(choices, seeds.ALL)
    with tempfile.TemporaryDirectory() as folder:
        file, state = Path(folder) / "m.yaml", Path(folder) / "s.json"
        file.write_bytes(content)
        state.write_text(
            json.dumps({"kind": "List", "apiVersion": "v1", "items": [*seeds.NODES, *seeds.QUEUES]}), "utf-8"
        )
        match choices.below(3):
            case 0:
                _run("check", str(file), "--state", str(state), "-o", "json")
            case 1:
                _run("can-run", str(file), "--state", str(state), "-o", "json")
            case _:
                _run("advise", "q", "--fits", str(file), "--state", str(state), "-o", "json")


def _run(*arguments: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    assert status in (0, 1, 2, 3)
    if status == 2:
        assert any(line.startswith("error: ") for line in err.getvalue().splitlines())
    elif out.getvalue():
        json.loads(out.getvalue())


# -- settings ----------------------------------------------------------------------------------------------------------


def settings(data: bytes) -> None:
    """Settings are refused with every mistake in them, or read so that what is written out of them reads the same."""
    choices = Choices(data)
    if choices.below(4) == 0:
        try:
            document = yaml.safe_load(choices.rest().decode("utf-8", "replace"))
        except (yaml.YAMLError, ValueError):
            return
    else:
        document = edited(choices, seeds.SETTINGS)
    try:
        found, _ = parse(document)
    except SettingsError as error:
        assert error.problems
        return
    assert parse(render(found))[0] == found


TARGETS: Final[Mapping[str, Target]] = {
    "reviews": reviews,
    "annotations": annotations,
    "quantities": quantities,
    "extender": extender,
    "states": states,
    "manifests": manifests,
    "settings": settings,
}
