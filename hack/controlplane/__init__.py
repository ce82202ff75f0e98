"""A Kubernetes control plane of real parts on loopback, for tests, demo and benchmarks.

```python
with ControlPlane() as cp:
    cp.add_nodes(nodes.h200_node("n1"))
    cp.kubectl("get", "nodes")
```
"""

from hack.controlplane.client import Answer, ApiClient, ApiError, WaitError, wait_for
from hack.controlplane.plane import ControlPlane
from hack.controlplane.processes import ManagedProcess, ProcessError, check_processes

__all__ = [
    "Answer",
    "ApiClient",
    "ApiError",
    "ControlPlane",
    "ManagedProcess",
    "ProcessError",
    "WaitError",
    "check_processes",
    "wait_for",
]
