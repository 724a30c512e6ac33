"""The scheduler as a state machine: events in, instructions out; no clock, no thread, no Spark.

Instants (`now`, `release`, `deadline`, `freshness`) and durations (`period_us`) are whole microseconds.
"""
