"""The control folder of a storage: lease, layout, history of runs, quarantine, scratch."""
