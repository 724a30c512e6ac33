"""Settings and parts for all tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The machine may be busy: how long an example takes says nothing about it.
settings.register_profile("freshline", deadline=None)
settings.load_profile("freshline")


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One Spark for all tests that need it."""
    from freshline.spark.session import open_session

    session = open_session("tests", "local[2]", {"spark.driver.memory": "1g"})
    yield session
    session.stop()
