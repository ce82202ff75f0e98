"""The admission process: AdmissionReviews over TLS, answered by `core.admission`.

Stateless, any number of replicas. All it knows of the cluster are projected nodes, queues and the names of
DeviceClasses, and it goes on without them.
"""
