"""Cards: what people call an accelerator (`NVIDIA-H200`, an MPS share, a MIG slice) and what Kubernetes calls it."""
