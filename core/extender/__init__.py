"""What schedulers ask while they look for a node: which ones fit a pod, and how well.

One pipeline behind two protocols, that of kube-scheduler's extenders and that of Volcano's `extender` plugin. Requests and
answers are parsed JSON here; nothing is booked, whatever is asked.
"""
