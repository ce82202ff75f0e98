"""Certificates and the hook's path in the controller: what every replica follows, and what the leader keeps in order."""

from collections.abc import Awaitable, Callable

from controller.hook_paths import HOOK_ENTRY, PLAIN_PATH, SECRET_MARK, HookPaths, former_replicas, reading
from controller.options import Options
from kube import webhook_entries
from kube.authority import Authority, Places
from kube.certificates import LOCAL_NAMES, Credentials, FollowedPair, follow_secret
from kube.client import Client
from kube.tls import ServingCertificate


class Trust:
    """Follows both Secrets and the webhook configurations on every replica; `lead` keeps them while this one leads.

    Clients of `serving` may show a certificate, those of `others` need none.
    """

    def __init__(
        self, client: Client, options: Options, serving: ServingCertificate, *others: ServingCertificate
    ) -> None:
        own = follow_secret(client, options.namespace, options.authority_secret)
        shared = follow_secret(client, options.namespace, options.cert_secret)
        followed = [webhook_entries.follow(client, item) for item in options.configurations]
        self.pair = FollowedPair(own, [serving, *others], shared=shared, verify_clients=True)
        self.paths = HookPaths(reading(client, options.namespace, options.authority_secret))
        self._configurations = followed
        self._told = False
        places = Places(
            namespace=options.namespace,
            secret=options.authority_secret,
            shared=options.cert_secret,
            names=(*options.certificate_names, *LOCAL_NAMES),
            shared_names=(*options.webhook_names, *LOCAL_NAMES),
            configurations=options.configurations,
            hook=HOOK_ENTRY,
            plain=PLAIN_PATH,
            mark=SECRET_MARK,
            given=options.given_certificates,
        )
        self._authority = Authority(client, places, former_replicas(client, options.namespace))
        self.paths.follow_secret(own)
        own.subscribe(self._changed)
        shared.subscribe(self._changed)
        for informer in followed:
            self.paths.follow_configuration(informer)
            informer.subscribe(self._changed)

    @property
    def credentials(self) -> Credentials | None:
        """The pair that is served, and whom it makes trusted; None before there is one."""
        return self.pair.credentials

    def authorities(self) -> bytes:
        """Who issues the controllers' certificates, PEM."""
        return b"" if self.credentials is None else self.credentials.ca_certificates

    @property
    def runnables(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What has to run on every replica beside the pair, each until cancelled."""
        return tuple(informer.run for informer in self._configurations)

    async def lead(self) -> None:
        """Keeps certificates, configurations and path in order until cancelled; for the leader alone."""
        await self._authority.run()

    def told(self) -> bool:
        """Whether the API server was ever told to trust this replica; what is undone by hand later is restored at once.

        Entries that call the webhook say nothing of that: a leader of an earlier version leaves one that came with an upgrade
        as it is, and would keep every new replica from being ready, and so itself in office.
        """
        self._told = self._told or (
            self.credentials is not None
            and all(informer.synced for informer in self._configurations)
            and all(
                view.trust(self.credentials.ca_certificates, HOOK_ENTRY)
                for informer in self._configurations
                for view in informer.values()
            )
        )
        return self._told

    def _changed(self, *_: object) -> None:
        self._authority.changed.set()
