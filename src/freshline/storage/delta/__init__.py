"""Delta tables that are committed exactly once: log, files, statistics, compaction, ledger."""
