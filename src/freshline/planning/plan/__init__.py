"""A warehouse's verdict: clusters, response and staleness bounds, least tracks, queries, outputs, advice."""
