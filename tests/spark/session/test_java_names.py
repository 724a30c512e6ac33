"""Names in Java are looked up once."""

import pytest
from py4j.java_gateway import GatewayClient, JavaObject
from py4j.protocol import Py4JError

pytestmark = pytest.mark.spark


@pytest.fixture
def sent(spark, monkeypatch) -> list[str]:
    commands: list[str] = []
    client = type(spark._jvm._gateway_client)
    assert issubclass(client, GatewayClient)
    send = client.send_command

    def noted(self, command, *args, **kwargs):
        commands.append(command)
        return send(self, command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", noted)
    return commands


def lookups(sent: list[str]) -> list[str]:
    return [command for command in sent if command.startswith("r\n")]


def test_a_class_a_package_and_a_method_are_looked_up_once(spark, sent) -> None:
    assert spark._jvm.java.util.Locale.forLanguageTag("de").toString() == "de"
    sent.clear()
    assert spark._jvm.java.util.Locale.forLanguageTag("fr").toString() == "fr"
    assert spark._jvm.java.util is spark._jvm.java.util
    assert lookups(sent) == []


def test_the_values_of_static_fields_are_looked_up_each_time(spark, sent) -> None:
    root = spark._jvm.java.util.Locale.ROOT
    assert isinstance(root, JavaObject)
    sent.clear()
    assert spark._jvm.java.util.Locale.ROOT is not root
    assert len(lookups(sent)) == 1


def test_what_does_not_exist_is_an_error_each_time(spark) -> None:
    for _ in range(2):
        with pytest.raises(Py4JError, match="does not exist"):
            spark._jvm.java.util.Locale.nowhere  # noqa: B018
    with pytest.raises(TypeError, match="not callable"):
        spark._jvm.java.utility()
