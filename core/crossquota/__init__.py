"""CrossQuota: what pods without GPU may use together on nodes with GPUs, and how such nodes are scored for them."""
