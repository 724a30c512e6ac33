"""Spark sessions, the Java process behind them, and how names are quoted."""
