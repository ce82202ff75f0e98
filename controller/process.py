"""The decision process: what runs in it, in which order it starts, and how it ends."""

import asyncio
import time
from functools import partial

from prometheus_client import REGISTRY

from controller.announcements import Announcements
from controller.answering import Answers
from controller.app import add_hook_routes, add_leader_routes
from controller.auditing import Auditor
from controller.binding import BindingHook
from controller.caches import Caches
from controller.decision_series import DecisionCounts, DecisionSeries
from controller.device_series import DeviceSeries
from controller.discovery import DiscoveryLog, NodeWatch
from controller.extender import Extender
from controller.extender_listener import add_moved_routes, listening
from controller.extender_metrics import ExtenderMetrics
from controller.extender_votes import VoteNotes
from controller.forwarding import ADDRESS_ANNOTATION, LeaderLink
from controller.knowledge import Knowledge
from controller.leading import Leader, anything_let_in
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.node_series import NodeSeries
from controller.nominations import Nominations
from controller.options import Options
from controller.overruns import OverrunWatch
from controller.page import Boards, Pages
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from controller.trust import Trust
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from controller.usage_series import UsageSeries
from core.objects import Group, Node, Pod, Queue, group_key
from core.page.view import prepare
from core.queues.rollouts import Rollouts
from core.settings import Settings
from kube import process, runtime
from kube.admission.metrics import DEFAULT as REVIEWS
from kube.callers import Callers
from kube.client import Client
from kube.election import Elector
from kube.events import EventRecorder, Reference
from kube.health import condition
from kube.intake import FOR_SCHEDULERS, IN_FLIGHT, Intake
from kube.lease import Term
from kube.process import Frame
from kube.resources import KUBERNETES_PODGROUPS
from kube.serving import application
from kube.tls import ServingCertificate

_Object = Pod | Group | Queue | Node


def run(settings: Settings, options: Options) -> int:
    """Runs the process to its end; see kube.process.run."""
    return process.run(options, partial(_serve, settings, options))


async def _serve(settings: Settings, options: Options, stop: asyncio.Event) -> int:
    async with await Client.connect(options.kubeconfig) as client, client.apart() as lease_client:
        serving, kube_serving = (
            ServingCertificate(required_ca=settings.webhook.required_ca),
            ServingCertificate(),
        )
        trust = Trust(client, options, serving, kube_serving)
        frame = Frame(options, serving, trust.pair)
        frame.health.require_ready(
            "configurations", condition(trust.told, "the API server does not trust us yet")
        )
        caches, metrics = Caches(client, settings), Metrics(REGISTRY)
        caches.nodes.subscribe(DiscoveryLog(caches.ledger.inventory, REGISTRY).on_node)
        frame.health.require_ready(
            "caches", condition(lambda: caches.synced, "the cluster is not listed yet")
        )
        recorder = EventRecorder(client, "cardquota", options.identity)
        exists = partial(_exists, caches)
        announcements = Announcements(recorder, _rollouts(caches), recorder.recall, exists)
        notes = VoteNotes(recorder, recorder.recall, exists)
        _forget_what_goes(caches, recorder, announcements, notes, metrics.by_queue)
        reservations = ReservationWatch(client, caches, announcements, metrics, settings, _now)
        overruns = OverrunWatch(caches, announcements, _now)
        series = QueueSeries(caches.ledger, reservations.late, reservations.unfinished)
        usage = UsageKeeper(client, caches, UsageFollower(caches, _now), metrics, options.namespace)
        for shown in (
            series,
            DecisionSeries(metrics.by_queue),
            DeviceSeries(caches.ledger.devices, lambda: series.leading),
            UsageSeries(caches.ledger, lambda: series.leading),
            NodeSeries(caches.ledger, caches.guests, lambda: series.leading),
            usage.counters(lambda: series.leading),
        ):
            REGISTRY.register(shown)
        definition = QueueDefinitionKeeper(client, caches, recorder, metrics, settings)
        elector = Elector(
            lease_client,
            options.namespace,
            options.lease,
            options.identity,
            annotations={ADDRESS_ANNOTATION: options.advertise_address} if options.advertise_address else {},
            preceded=lambda: anything_let_in(caches.ledger),
        )
        link = LeaderLink(
            elector, lambda: trust.credentials, options.service, timeout_s=options.hook_timeout_s / 2
        )
        nominations = Nominations(client, caches)
        stranded = StrandedPods(caches, announcements, nominations.move)
        hook = BindingHook(
            client,
            caches,
            settings,
            metrics,
            link.ask,
            hook_timeout_s=options.hook_timeout_s,
            on_refusal=stranded.refused,
        )
        leader = Leader(
            caches,
            Lifter(client, caches, announcements, metrics),
            nominations,
            Publisher(client, caches, announcements, metrics),
            Repairer(client, caches, recorder, metrics, settings),
            reservations,
            stranded,
            definition,
            QueueRecords(client, caches),
            hook,
            series,
            Auditor(caches, metrics),
            NodeWatch(caches, announcements),
            usage,
        )
        frame.health.require_live("refresh", leader.stuck)
        app = application()
        # What schedulers send takes nothing from binds.
        binds = Intake(IN_FLIGHT - FOR_SCHEDULERS)
        add_hook_routes(app, hook, REVIEWS, trust.paths, binds)
        add_leader_routes(app, hook, REVIEWS, trust.authorities, binds)
        callers = Callers(client)
        answers = Answers(
            Knowledge(caches, announcements, callers, metrics, options.identity),
            lambda: series.leading,
            link,
            app,
            binds,
            _pages(caches, announcements, usage, callers, options) if options.answers_page else None,
        )
        extender = Extender(caches, ExtenderMetrics(REGISTRY), notes.told, intake=Intake(FOR_SCHEDULERS))
        volcano_port = options.extender_port if settings.features.extender else None
        kube_port = options.kube_extender_port if settings.features.extender else None
        if kube_port is not None:
            add_moved_routes(app, kube_port)

        async def lead(term: Term) -> None:
            overruns.tell()
            await runtime.run_both(runtime.run_both(leader.lead(term), announcements.run()), trust.lead())

        async def campaign() -> None:
            await runtime.filled(caches.wait_synced())
            await elector.run(lead)

        async def note_votes() -> None:
            await caches.wait_synced()
            await notes.run()

        host = options.bind_address
        # The main port drains first, and with it readiness fails.
        async with (
            link,
            listening(extender.add_volcano_routes, host, volcano_port, name="extender"),
            listening(
                extender.add_kube_routes, host, kube_port, name="kube-extender", tls=kube_serving.context
            ),
            listening(
                answers.add_routes, host, options.answers_port, name="answers", tls=kube_serving.context
            ),
            frame.listening(app, "binding"),
        ):
            await runtime.run_until(
                stop,
                frame.run,
                *trust.runnables,
                caches.run,
                overruns.run,
                usage.follower.run,
                *definition.runnables,
                recorder.run,
                note_votes,
                campaign,
            )
    return 0


def _pages(
    caches: Caches, announcements: Announcements, usage: UsageKeeper, callers: Callers, options: Options
) -> Pages:
    prepare()
    boards = Boards(caches, lambda: announcements.holds, usage.summed, _now)
    return Pages(caches, boards, callers, options.identity, options.namespace)


def _exists(caches: Caches, regarding: Reference) -> bool:
    """Whether an object that an event is about is there: that very one, not another of its name."""
    key = f"{regarding.namespace}/{regarding.name}" if regarding.namespace else regarding.name
    found: Pod | Group | Queue | Node | None = None
    match regarding.kind:
        case "Pod":
            found = caches.pods.get(key)
        case "PodGroup":
            of_kubernetes = regarding.api_version == KUBERNETES_PODGROUPS.api_version
            found = caches.group(
                group_key.kubernetes(regarding.namespace, regarding.name) if of_kubernetes else key
            )
        case "Queue":
            found = caches.queues.get(key)
        case "Node":
            # Events about nodes are in a namespace, nodes are not.
            found = caches.nodes.get(regarding.name)
        case _:
            pass
    return found is not None and found.uid == regarding.uid


def _forget_what_goes(
    caches: Caches,
    recorder: EventRecorder,
    announcements: Announcements,
    notes: VoteNotes,
    counts: DecisionCounts,
) -> None:
    """What is remembered about an object goes with it; first what is not to be said any more, then the rest."""

    def gone(old: Group | Queue | None, new: Group | Queue | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            announcements.gone(old.uid)

    def unrecorded(old: _Object | None, new: _Object | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            recorder.gone(old.uid)

    caches.pods.subscribe(announcements.pod_changed)
    caches.groups.subscribe(gone)
    caches.groups.subscribe(notes.group_changed)
    caches.kubernetes_groups.subscribe(gone)
    caches.queues.subscribe(gone)
    caches.queues.subscribe(counts.queue_changed)
    for informer in (caches.pods, caches.groups, caches.kubernetes_groups, caches.queues, caches.nodes):
        informer.subscribe(unrecorded)


def _rollouts(caches: Caches) -> Rollouts:
    """The rollouts that the caches show; subscribed after the ledger, which they ask."""
    rollouts = Rollouts(caches.ledger)

    def follow(old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            rollouts.put_pod(new)
        elif old is not None:
            rollouts.drop_pod(old.uid)

    caches.pods.subscribe(follow)
    return rollouts


def _now() -> int:
    """The wall clock in microseconds since 1970."""
    return time.time_ns() // 1000
