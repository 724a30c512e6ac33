"""The driver: the loop between kernel and tracks, its messages, threads and journal."""
