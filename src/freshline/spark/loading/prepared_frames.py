"""Plans that Spark analyses once and that are then used with other files.

The look-up of a data source, the check of its options and the resolution of columns take a seventh of a small
update. Their result is the same each time: only the files of an update are new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

_FILES = "org.apache.spark.sql.execution.datasources"


class PreparedFrames:
    """The plans of a warehouse's updates, by session and name. Tracks share it, not sessions."""

    def __init__(self) -> None:
        self._plans: dict[tuple[SparkSession, Hashable], PreparedPlan] = {}

    def of(
        self,
        session: SparkSession,
        name: Hashable,
        paths: Sequence[str],
        make: Callable[[], DataFrame],
    ) -> DataFrame:
        """The rows of these files, as `make` reads them; the rest of its plan must be the same each time.

        `make` is called the first time, if Spark's plan cannot be used again, and if a file is missing: it
        raises the error, which a plan that is used again would not.
        """
        plan = self._plans.get((session, name))
        if plan is not None and paths and all(Path(path).exists() for path in paths):
            return plan.of(paths)
        frame = make()
        if plan is None and (plan := prepared(frame)) is not None:
            self._plans[session, name] = plan
        return frame


class PreparedPlan:
    """A plan that reads one relation of files and processes it in steps, one after the other."""

    def __init__(self, session: SparkSession, above: Sequence[Any], leaf: Any) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._session = session
        self._above = above  # the steps, the last one first
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
        # Without the original files, which could be a long text.
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
        """The same plan over these files, by their exact names; they must exist."""
        session = self._session._jsparkSession
        places = [self._path(*self._file_system, str(Path(path).absolute())) for path in paths]
        index = self._index(session, self._listed(places), *self._listing)
        plan = self._leaf.copy(self._relation.copy(index, *self._reading, session), *self._columns)
        for step in reversed(self._above):
            plan = step.withNewChildren(self._listed([plan]))
        plan.setAnalyzed()  # the analysis is that of the other files: only the files are new
        return DataFrame(self._rows(session, plan), self._session)

    def _listed(self, values: Sequence[Any]) -> Any:
        found = self._list()
        for value in values:
            found.add(value)
        return self._sequence(found)


def prepared(frame: DataFrame) -> PreparedPlan | None:
    """A frame's plan to be used again; None if it reads more than one relation, or no files.

    There must be no subqueries: expressions are not looked into. None also if this version of Spark has other
    classes than expected.
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
