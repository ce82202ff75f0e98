"""What the command line says about the decision process."""

from dataclasses import dataclass

from kube.process import ProcessOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The flags of `cardquota controller`, under their names.

    `identity` must be no other process', an earlier life included. `hook_timeout_s` is how long the API server waits for
    the binding hook. `advertise_address` is where the other replicas
    reach this one, `https://<address>:<port>`; without it they cannot forward binds. On `extender_port` Volcano's questions
    are answered over plain HTTP, on `kube_extender_port` kube-scheduler's over HTTPS, on `answers_port` those of people,
    the status page among them with `answers_page`; None: nowhere. Authority, the
    controllers' pair and the hook's path are kept in `authority_secret`, the webhook's pair in `cert_secret`; that is issued
    for `webhook_names`. With `given_certificates` others fill both, and nothing is issued.
    """

    authority_secret: str = "cardquota-controller"  # noqa: S105 - a name
    webhook_names: tuple[str, ...] = ()
    given_certificates: bool = False
    lease: str = "cardquota"
    identity: str
    advertise_address: str = ""
    hook_timeout_s: float = 5.0
    extender_port: int | None = None
    kube_extender_port: int | None = None
    answers_port: int | None = None
    answers_page: bool = False

    def __post_init__(self) -> None:
        """Refuses an identity that would mean a free lease. Raises ValueError."""
        if not self.identity:
            raise ValueError("identity: must not be empty")
