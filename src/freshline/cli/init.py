"""`freshline init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from freshline.base.errors import InputError
from freshline.cli.shared import JsonOption, print_json

_WAREHOUSE: Final = """\
# A small warehouse: two feeds, a table for each, and two tables derived from them.
# `freshline plan` proves how stale each table can become; `freshline run` keeps them fresh.
name: network
storage: warehouse             # the Delta tables, next to this file

pools:
  updates: {tracks: 2}         # two jobs at once

feeds:                         # data files land here; a file counts once its name does not begin with a dot
  packets:
    path: landing/packets
    format: csv
    schema: "ts timestamp, src string, dst string, bytes long"
    timestamp: ts
    period: 3 seconds          # a file every 3 seconds ...
    jitter: 500ms              # ... or a little later
  alerts:
    path: landing/alerts
    format: json
    schema: "ts timestamp, src string, router string, severity int"
    timestamp: ts
    period: 5 seconds
    jitter: 500ms

tables:                        # target_lag: how stale a table may be
  # The costs are rough guesses. Leave them out once `freshline run` has learned the real ones.
  packets:
    feed: packets
    target_lag: 20 seconds
    cost: {startup: 600ms, rate: 0.02}
  alerts:
    feed: alerts
    target_lag: 30 seconds
    cost: {startup: 600ms, rate: 0.02}

  traffic:                     # bytes by host, in windows of ten seconds, each written when it is complete
    sql: |
      SELECT window(ts, '10 seconds').start AS ts, src, sum(bytes) AS bytes
      FROM packets
      GROUP BY window(ts, '10 seconds'), src
    timestamp: ts
    period: 10 seconds
    align: 10 seconds
    target_lag: 1 minute
    cost: {startup: 1s, rate: 0.02}
  suspects:                    # what a host had sent in the five seconds before it raised an alert
    sql: |
      SELECT greatest(a.ts, p.ts) AS ts, a.src, a.severity, p.dst, p.bytes
      FROM alerts a JOIN packets p
        ON a.src = p.src AND p.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts
    timestamp: ts
    period: 5 seconds
    lookback: 5 seconds
    target_lag: 1 minute
    cost: {startup: 1s, rate: 0.02}
"""

_README: Final = """\
Write data files, in one terminal: `python -m freshline.testing.network --into landing --feed packets=3s --feed alerts=5s`
Keep the tables fresh, in another: `freshline run` (Ctrl-C ends it; it goes on where it was when started again)
Look, in a third: `freshline status`, or `freshline sql "SELECT * FROM traffic ORDER BY ts DESC LIMIT 10"`
Ask what is proven, and what would be: `freshline plan`, `freshline simulate --for 1h`
Then make `freshline.yml` your own: feeds, tables, targets; `freshline schema` helps your editor with it.
"""  # noqa: E501

FILES: Final = {"freshline.yml": _WAREHOUSE, "README.md": _README}


def init(
    folder: Annotated[Path, typer.Argument(help="Where the project goes; made if missing.", metavar="DIR")],
    as_json: JsonOption = False,
) -> None:
    """Write a small warehouse that runs, to start from.

    Example: freshline init network
    """
    for name in FILES:
        if (folder / name).exists():
            raise InputError(f"there is a {folder / name} already", "Name another folder, or remove the file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        what = f"cannot write into {folder}: {error.strerror}"
        raise InputError(what, "Name a folder that can be written") from error
    if as_json:
        print_json({"folder": str(folder), "files": list(FILES)})
        return
    for name in FILES:
        print(f"Wrote {folder / name}")
    print(f"Next: cd {folder}, and see README.md, or `freshline plan`.")
