"""The server's side of admission: AdmissionReviews on the wire, and the endpoint that answers them."""

from kube.admission.endpoint import add_review_route
from kube.admission.metrics import DEFAULT, ReviewMetrics

__all__ = ["DEFAULT", "ReviewMetrics", "add_review_route"]
