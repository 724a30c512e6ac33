"""Plans that Spark has analysed once, read with other files ever after.

To look a data source up, to check its options and to resolve the columns anew is a seventh of a small update,
and comes out the same each time: of an update only the files are new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

_FILES = "org.apache.spark.sql.execution.datasources"


class PreparedFrames:
    """The plans of a warehouse's updates, by session and name. Tracks share it; a session is one track's."""

    def __init__(self) -> None:
        self._plans: dict[tuple[SparkSession, Hashable], PreparedPlan] = {}

    def of(
        self,
        session: SparkSession,
        name: Hashable,
        paths: Sequence[str],
        make: Callable[[], DataFrame],
    ) -> DataFrame:
        """The rows of these files, as `make` reads them; whatever it does else must be the same each time.

        It is asked the first time, where Spark's plan cannot be used again, and where a file is missing: it
        says so, and a plan that is used again would not.
        """
        plan = self._plans.get((session, name))
        if plan is not None and paths and all(Path(path).exists() for path in paths):
            return plan.of(paths)
        frame = make()
        if plan is None and (plan := prepared(frame)) is not None:
            self._plans[session, name] = plan
        return frame


class PreparedPlan:
    """A plan that reads one relation of files, and does one thing after the other with it."""

    def __init__(self, session: SparkSession, above: Sequence[Any], leaf: Any) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._session = session
        self._above = above  # what is done with the rows, the last step first
        self._leaf = leaf
        self._relation = relation = leaf.relation()
        root = relation.location().rootPaths().head().toUri()
        self._file_system = root.getScheme(), root.getAuthority()
        self._path = jvm.org.apache.hadoop.fs.Path
        self._list = jvm.java.util.ArrayList
        self._sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows
        files = jvm
        for part in _FILES.split("."):
            files = getattr(files, part)
        nothing = getattr(getattr(jvm.scala, "None$"), "MODULE$")
        not_kept = getattr(getattr(files, "NoopCache$"), "MODULE$")
        self._index = files.InMemoryFileIndex
        # Not the files that it was made with: of many, that would be a long text.
        options = relation.options().removed("path").removed("paths")
        self._listing = (
            options,
            jvm.scala.Option.apply(relation.dataSchema()),
            not_kept,
            nothing,
            nothing,
        )
        self._reading = (
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            relation.fileFormat(),
            options,
        )
        self._columns = (leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())

    def of(self, paths: Sequence[str]) -> DataFrame:
        """The same with the rows of these files, by their very names; they must be there."""
        session = self._session._jsparkSession
        places = [self._path(*self._file_system, str(Path(path).absolute())) for path in paths]
        index = self._index(session, self._listed(places), *self._listing)
        plan = self._leaf.copy(self._relation.copy(index, *self._reading, session), *self._columns)
        for step in reversed(self._above):
            plan = step.withNewChildren(self._listed([plan]))
        plan.setAnalyzed()  # as it was with the other files, and nothing but the files is new
        return DataFrame(self._rows(session, plan), self._session)

    def _listed(self, values: Sequence[Any]) -> Any:
        found = self._list()
        for value in values:
            found.add(value)
        return self._sequence(found)


def prepared(frame: DataFrame) -> PreparedPlan | None:
    """A frame's plan to be used again; None where it reads more than one relation, or no files.

    What is within an expression, such as another query, is not looked at: there must be none. None too where
    this Spark has other classes than the one that this was written for.
    """
    try:
        plan = frame._jdf.queryExecution().analyzed()
        above = []
        while plan.children().size() == 1:
            above.append(plan)
            plan = plan.children().head()
        if plan.getClass().getName() != f"{_FILES}.LogicalRelation":
            return None
        if plan.relation().location().getClass().getName() != f"{_FILES}.InMemoryFileIndex":
            return None
        found = PreparedPlan(frame.sparkSession, above, plan)
        roots = plan.relation().location().rootPaths()
        found.of([str(roots.head().toUri().getPath())])
    except (Py4JError, TypeError):
        return None
    return found
