"""One Spark application for all tracks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from pyspark.core import context
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from freshline.base.errors import InputError
from freshline.definitions.sections.nodes import is_local
from freshline.spark.session.java import no_java_left_behind
from freshline.spark.session.java_names import remember_names

JAVA_LEAST = 17
_LOGGING = Path(__file__).with_name("log4j2.properties")

# PySpark's own loggers write every error of a query to standard error, with its stack trace. Freshline says
# what is wrong in one sentence.
_TRACES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

# Settings that the warehouse relies on; users cannot change them.
REQUIRED = {
    "spark.scheduler.mode": "FAIR",
    # INT96, the default, has no statistics: files could not be pruned by time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    # Without it Spark lacks the Windows encodings, which most files other than UTF-8 have.
    "spark.sql.legacy.javaCharsets": "true",
    # Every job writes into its own folder, which only its Delta commit makes visible.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.driver.memory": "2g",
    # Updates are small: many partitions cost more than they save.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Queries reuse their generated code: the code of updates, new each time, must not evict it.
    "spark.sql.codegen.cache.maxEntries": "400",
    # The files of a job are known by name; beyond 32 files Spark would start a job to list them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # Past jobs that Spark keeps for its web pages: by default the last thousand, which take 30 MB.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "100",
    # No checksum file beside every file: Parquet has its own checksums.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}
_LOOPBACK = "127.0.0.1"
# Spark listens for its executors, even if they are in the same process.
_ON_THIS_MACHINE = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}


def open_session(
    name: str,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    scratch: Path | None = None,
) -> SparkSession:
    """Starts Spark, or joins the cluster at `master`.

    FAIR pools need no file: Spark makes one when a job first names it. The temporary files of a Spark on
    this machine go to the folder `scratch`, if one is given.
    """
    ensure_java()
    for name in _TRACES:
        PySparkLogger.getLogger(name).disabled = True
    chosen = {"spark.master": master or f"local[{os.cpu_count() or 2}]", **(settings or {})}
    defaults = {**_DEFAULTS, "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}"}
    if is_local(chosen["spark.master"]):
        defaults |= _ON_THIS_MACHINE
        # Other users of the machine can use the loopback too. Spark makes no secret for a `local-cluster`.
        if not chosen["spark.master"].startswith("local-cluster"):
            defaults["spark.authenticate"] = "true"
        # Spark would read a comma as a separator of folders.
        if scratch is not None and "," not in str(scratch):
            defaults["spark.local.dir"] = str(scratch.absolute())
    builder = SparkSession.builder.appName(f"freshline {name}")
    for key, value in {**defaults, **chosen, **REQUIRED}.items():
        builder = builder.config(key, value)
    with _listening_at(chosen["spark.master"]), _same_interrupts(), no_java_left_behind():
        session = builder.getOrCreate()
    remember_names(session._jvm)
    return session


@contextmanager
def _listening_at(master: str) -> Iterator[None]:
    """Web pages and the parts of a `local-cluster` listen at the address in an environment variable."""
    if not is_local(master) or "SPARK_LOCAL_IP" in os.environ:
        yield
        return
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    try:
        yield
    finally:
        del os.environ["SPARK_LOCAL_IP"]


@contextmanager
def _same_interrupts() -> Iterator[None]:
    """Keeps the handler of Ctrl-C, which PySpark would replace."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        yield
        return
    usual = vars(context)["signal"]
    vars(context)["signal"] = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda number, handler: None)
    try:
        yield
    finally:
        vars(context)["signal"] = usual


def _umask() -> int:
    """The process's umask, for Hadoop, which sets the modes of files itself."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def ensure_java() -> None:
    """Raises InputError, instead of Spark's stack trace, if Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = (
        f"Install Java {JAVA_LEAST} or 21 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )
    if java is None or not Path(java).exists():
        raise InputError("Spark needs Java, but none was found", remedy)
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    words = answer.split('"')
    major = words[1].split(".")[0] if len(words) > 1 else ""
    if not major.isdecimal() or int(major) < JAVA_LEAST:
        raise InputError(
            f"Spark needs Java {JAVA_LEAST} or newer, but {java} is {major or 'unknown'}", remedy
        )


def use_pool(session: SparkSession, pool: str) -> None:
    """Makes this thread's jobs run in that pool of Spark."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def track_pool(pool: str, track: int) -> str:
    """The pool of Spark for a track: each has its own, so that tracks share the cores fairly."""
    return f"{pool}-{track}"


def use_track(session: SparkSession, pool: str, track: int) -> None:
    """Makes this thread that track: its jobs run in its pool and are cancelled together."""
    use_group(session, track_pool(pool, track), f"track-{track}", f"track {track}")


def use_group(session: SparkSession, pool: str, group: str, description: str) -> None:
    """Makes this thread's jobs run in that pool, as a group that is cancelled together."""
    use_pool(session, pool)
    session.sparkContext.setJobGroup(group, f"Freshline, {description}", interruptOnCancel=True)
