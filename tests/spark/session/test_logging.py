"""What Spark may write to the terminal."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from freshline.spark.session import session


@pytest.mark.spark
def test_spark_reads_freshlines_logging_and_writes_errors_only(spark) -> None:
    options = session._DEFAULTS["spark.driver.extraJavaOptions"]
    found = re.search(r"log4j2.configurationFile=(\S+)", options)
    assert found is not None
    assert "rootLogger.level = error" in Path(urlsplit(found[1]).path).read_text(encoding="utf-8")
    logger = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    assert str(logger.getLevel()) == "ERROR"
