"""What a warehouse keeps on disk: Delta tables, the ledger of consumed files, the lease, the quarantine."""
