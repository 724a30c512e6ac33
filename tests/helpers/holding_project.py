"""A small warehouse whose targets hold, for tests to change."""

HOLDS = """\
name: network
pools:
  updates: {tracks: 2, policy: edf}
feeds:
  packets: {path: landing/packets, format: csv, schema: "ts timestamp, src string, bytes long", timestamp: ts, period: 5 minutes, jitter: 10s}
tables:
  packets: {feed: packets, target_lag: 20 minutes, cost: {startup: 3s, rate: 0.1, variability: 0.2}}
  traffic: {sql: "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src", period: 15 minutes, target_lag: 1 hour, pool: updates, cost: {startup: 9s, rate: 0.1}}
"""  # noqa: E501
