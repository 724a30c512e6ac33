"""One Spark application for all tracks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from freshline.definitions.errors import InputError

JAVA_LEAST = 17
_LOGGING = Path(__file__).with_name("log4j2.properties")

# What the warehouse relies on; a user's own settings cannot change these.
_REQUIRED = {
    "spark.scheduler.mode": "FAIR",
    # INT96, the default, has no statistics: nothing could be pruned by time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    # Without it Spark knows no encoding of Windows, in which most files that are not UTF-8 are.
    "spark.sql.legacy.javaCharsets": "true",
    # Every job writes into a folder of its own that only its Delta commit makes visible.
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
    # What Spark keeps of past work for its web pages, by default of the last thousand, which takes 30 MB.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "100",
    # Checksum files beside every file: Parquet has its own.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}


def open_session(
    name: str, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Starts Spark, or joins the cluster at `master`.

    A FAIR pool for each of ours needs no file: Spark makes one when a job first names it.
    """
    ensure_java()
    builder = SparkSession.builder.appName(f"freshline {name}").master(
        master or f"local[{os.cpu_count() or 2}]"
    )
    for key, value in {**_DEFAULTS, **(settings or {}), **_REQUIRED}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def ensure_java() -> None:
    """A sentence instead of Spark's stack trace where Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = (
        f"Install Java {JAVA_LEAST} or 21 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )
    if java is None or not Path(java).exists():
        raise InputError("Spark needs Java, and none was found", remedy)
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    words = answer.split('"')
    major = words[1].split(".")[0] if len(words) > 1 else ""
    if not major.isdecimal() or int(major) < JAVA_LEAST:
        raise InputError(
            f"Spark needs Java {JAVA_LEAST} or newer, and {java} is {major or 'unknown'}", remedy
        )
