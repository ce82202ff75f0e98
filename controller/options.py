"""What the command line says about the decision process."""

from dataclasses import dataclass

from kube.process import ProcessOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The flags of `cardquota controller`, under their names.

    `identity` must be no other process', an earlier life included. `advertise_address` is where the other replicas
    reach this one, `https://<address>:<port>`; without it they cannot forward binds.
    """

    lease: str = "cardquota"
    identity: str
    advertise_address: str = ""
