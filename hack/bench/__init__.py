"""What the product costs: every figure beside a floor that was measured in the same run.

`python -m hack.bench` prints the table. The floor of a figure is the least that any program would have to do for the
same input; the ratio of both says something on a busy machine as well, where the figure alone does not.
"""
