"""The status of a run: its record, the terminal view, the summary."""
