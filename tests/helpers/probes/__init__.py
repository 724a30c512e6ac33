"""A fifth kind of work, made for tests: every second a probe is taken, whatever the tables do.

`in_kernel` would be a folder of `kernel/`, `simulated` a file of `simulation/`, `live` a folder of `live/`.
"""
