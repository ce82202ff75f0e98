"""The admission process: AdmissionReviews over TLS, answered by `core.admission`.

Stateless, any number of replicas. All it knows of the cluster are projected nodes, queues, namespaces and the
names of DeviceClasses, and it goes on without them.
"""
