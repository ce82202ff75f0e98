"""The quota pass: which waiting pods are lifted now, which are held and why, and the patch of each lift."""
