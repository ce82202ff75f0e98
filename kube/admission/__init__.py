"""The server's side of admission: AdmissionReviews on the wire, and the endpoint that answers them."""
