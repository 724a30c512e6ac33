"""A warehouse that can be run, what is put into it, and what is then said about running it."""

from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import loads

HEAD = """\
name: network
pools: {updates: {tracks: 1}}
feeds:
  a: {period: 10s, path: in/a, format: csv, schema: "ts timestamp, src string, n long", timestamp: ts}
  b: {period: 10s, path: in/b, format: json, schema: "at timestamp, src string, m array<int>", timestamp: at}
tables:
  a: {feed: a}
  b: {feed: b}
"""
BY_TIME = "Group by the timestamp column, by date_trunc of it or by window(ts, '1 hour')."
AS_IT_IS = "Select the timestamp of a source as it is, or the start of its window."
UNGROUPED = f"it has an aggregate that does not group by time. {BY_TIME}"
MINUTES = "BETWEEN INTERVAL 0 MINUTES AND INTERVAL 5 MINUTES"
GREATEST = "SELECT greatest(a.ts, b.at) AS ts"
RANGE = "FROM a JOIN b ON a.src = b.src AND a.ts BETWEEN b.at - INTERVAL 1 HOUR AND b.at"


def complaints(text: str) -> list[str]:
    try:
        check_runnable(loads(text))
    except DefinitionErrors as errors:
        return [str(error) for error in errors.errors]
    except InputError as error:
        return [str(error)]
    return []


def of_query(sql: str, keys: str = "") -> list[str]:
    """The errors of a table `t` on line 9 whose rows must only be appended."""
    text = f'{HEAD}  t: {{period: 1h, refresh: append, {keys} sql: "{sql}"}}\n'
    return [said.replace("; or remove `refresh: append`", "") for said in complaints(text)]


def of_select(select: str, keys: str = "") -> list[str]:
    return complaints(HEAD.replace("a: {feed: a}", f'a: {{feed: a, {keys} select: "{select}"}}'))
