"""What is heard of a Java process that ended while calls were under way."""

import logging
import socket
import struct
import threading

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from freshline.spark.session import java


def resets(listening: socket.socket) -> None:
    """Takes one call, and resets the connection in place of an answer, as a killed process may."""
    connection, _ = listening.accept()
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def cut_short() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=resets, args=(listening,))
        thread.start()
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=listening.getsockname()[1]))
        with pytest.raises(Py4JError):
            gateway.jvm.java.lang.System.nanoTime()
        thread.join()


def test_a_call_that_javas_end_cuts_short_is_an_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    cut_short()
    assert caplog.records  # or there would be nothing to hush
    caplog.clear()
    java.hush_lost_connections()
    try:
        cut_short()
        logging.error("something else")
    finally:
        logging.getLogger().removeFilter(java._is_not_py4js)
    assert [record.message for record in caplog.records] == ["something else"]
