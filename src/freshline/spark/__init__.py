"""All work with Spark: sessions, loading tables, answering queries and requests."""
