"""The simulated driver: the kernel in invented time, from event to event."""
