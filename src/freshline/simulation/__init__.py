"""The simulated driver: runs the kernel in simulated time, from event to event."""
