"""Tables in a live run: finding files, loading them, failures, observation, housekeeping."""
