"""Settings and parts for all tests."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The machine may be busy: how long an example takes says nothing about it.
settings.register_profile("freshline", deadline=None)
settings.register_profile("soak", settings.get_profile("freshline"))  # see tests/helpers/cases.py
settings.load_profile("freshline")
# For the Spark of a worker and for those of processes that tests start.
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "spark_conf")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for a Spark is marked so; one that starts its own in another process marks itself.

    The longest come first: at the end of a run no worker waits for one of them.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("soak") is None)


@pytest.fixture(autouse=True)
def _no_java_without_the_mark(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is not marked starts no Spark: so `make check` is quick, and stays so."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setenv("JAVA_HOME", str(Path(tmp_path_factory.getbasetemp()) / "no-java"))


@pytest.fixture
def short_waits() -> Iterator[None]:
    """A live run in a test's own process looks, ticks and retries more often than a user's."""
    from short_waits import short_waits

    with short_waits():
        yield


@pytest.fixture(autouse=True)
def _short_waits_on_spark(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames:
        request.getfixturevalue("short_waits")


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One Spark for all tests of a worker that need it."""
    from freshline.spark.session.java import end_java
    from freshline.spark.session.session import open_session

    session = open_session("tests", "local[2]", {"spark.driver.memory": "1g"})
    yield session
    session.stop()
    end_java()  # and waits for the process: nothing of it outlives the tests
