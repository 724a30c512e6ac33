"""The service over real HTTP on the loopback: who is heard, and what becomes of what they send."""

import http.client
import json
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshline.base.errors import DefinitionErrors, InputError, Place
from freshline.definitions.load import loads
from freshline.service import app, guard, server
from freshline.service.address import ServiceAddress
from freshline.service.client import NoAnswer, ask
from freshline.service.server import serving
from patience import PATIENCE_S


class Site:
    """A warehouse that remembers what it was asked."""

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.decided = threading.Event()
        self.decided.set()

    def status(self) -> dict[str, Any]:
        return {"tables": []}

    def results(self, query: str) -> dict[str, Any] | None:
        return {"query": query} if query == "sums" else None

    def apply(self, text: str) -> dict[str, Any]:
        self.applied.append(text)
        if not self.decided.wait(PATIENCE_S):
            raise TimeoutError
        if text == "late":
            raise TimeoutError
        if text == "bug":
            raise KeyError("a bug")
        warehouse = loads(text)
        return {"admitted": list(warehouse.tables)}


@contextmanager
def running(folder: Path) -> Iterator[tuple[Site, Path, ServiceAddress]]:
    site, path = Site(), folder / "warehouse" / "_freshline" / "service.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with serving(site, path) as address:
        yield site, path, address


@pytest.fixture(scope="module")
def one_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path, ServiceAddress]]:
    with running(tmp_path_factory.mktemp("service")) as parts:
        yield parts


@pytest.fixture
def service(one_service: tuple[Site, Path, ServiceAddress]) -> tuple[Site, Path, ServiceAddress]:
    """One for all tests that do not ask how it begins or ends."""
    one_service[0].applied.clear()
    return one_service


def send(
    address: ServiceAddress,
    path: str = "/v1/status",
    method: str = "GET",
    body: bytes | None = None,
    **headers: str,
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE_S)
    given = {"Authorization": f"Bearer {address.token}"} | headers
    try:
        connection.request(method, path, body, {name: value for name, value in given.items() if value})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_status_and_results_are_told_to_whoever_has_the_token(service) -> None:
    _, _, address = service
    assert send(address) == (200, {"tables": []})
    assert send(address, "/v1/results/sums") == (200, {"query": "sums"})


@pytest.mark.parametrize(
    "credentials", ["", "Bearer", "Bearer ", "Bearer x", "Basic {token}", "bearer{token}", "Bearer {token}x"]
)
@pytest.mark.parametrize("path", ["/v1/status", "/v1/apply", "/", "/docs", "/openapi.json"])
def test_without_the_token_nobody_learns_even_which_paths_there_are(service, credentials, path) -> None:
    _, _, address = service
    authorization = credentials.format(token=address.token)
    status, answer = send(address, path, Authorization=authorization)
    remedy = "Send `Authorization: Bearer` and the token in the storage's _freshline/service.json"
    error = {"code": "unauthorized", "message": "the token is missing or wrong", "remedy": remedy}
    assert (status, answer) == (401, {"error": error})


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/docs", "/openapi.json", "/v1/results/other", "/v1/results/a/b"]
)
def test_other_paths_are_404(service, path) -> None:
    assert send(service[2], path)[0] == 404


def test_another_method_is_405(service) -> None:
    assert send(service[2], "/v1/apply")[0] == 405
    assert send(service[2], "/v1/status", "POST", b"")[0] == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]:{port}", "0.0.0.0:{port}"]
)
def test_a_page_whose_name_points_to_the_loopback_is_not_heard(service, host) -> None:
    _, _, address = service
    assert send(address, Host=host.format(port=address.port))[0] == 421
    assert send(address, Host=f"localhost:{address.port}")[0] == 200


def test_the_file_is_its_owners_alone_and_goes_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "warehouse" / "_freshline").mkdir(parents=True, mode=0o777)
    with running(tmp_path) as (_, path, address):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text()) == {"url": address.url, "token": address.token}
        assert len(address.token) >= 32
        assert [each.name for each in path.parent.iterdir()] == ["service.json"]
    assert not path.exists()


def test_the_file_of_a_run_that_was_killed_is_replaced_and_of_a_later_one_left(tmp_path: Path) -> None:
    with running(tmp_path) as (_, path, first):
        later = ServiceAddress("http://127.0.0.1:9", "later")
        later.write(path)
    assert ServiceAddress.read(path) == later
    with running(tmp_path) as (_, path, second):
        assert ServiceAddress.read(path) == second
        assert second.token not in (first.token, later.token)
    assert not path.exists()


def test_only_the_loopback_is_listened_on(service) -> None:
    _, _, address = service
    assert address.url.startswith("http://127.0.0.1:")
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), address.port, socket.AF_INET)}
    for other in others - {"127.0.0.1"}:
        with socket.socket() as attempt:
            assert attempt.connect_ex((other, address.port)) != 0 or other.startswith("127.")


def test_a_body_that_is_too_large_is_413_however_it_is_told(service, monkeypatch) -> None:
    site, _, address = service
    monkeypatch.setattr(app, "FILE_MAX", 1_000)
    assert send(address, "/v1/apply", "POST", b"x" * 1_001)[0] == 413
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {address.token}"}
    parts = (b"y" * 600 for _ in range(2))
    connection.request("POST", "/v1/apply", parts, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    assert site.applied == []


def test_a_body_that_declares_too_much_is_refused_before_it_comes(service) -> None:
    _, _, address = service
    with socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as wire:
        wire.sendall(
            f"POST /v1/apply HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
            f"Authorization: Bearer {address.token}\r\nContent-Length: 99999999999\r\n\r\n".encode()
        )
        # The body never comes, and the service would wait for it for two minutes.
        assert wire.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_without_the_token_the_body_is_not_waited_for(service) -> None:
    _, _, address = service
    with socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as wire:
        wire.sendall(
            b"POST /v1/apply HTTP/1.1\r\nContent-Length: 999\r\n"
            + f"Host: 127.0.0.1:{address.port}\r\n\r\n".encode()
        )
        assert wire.recv(1 << 16).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("is_whole", [True, False])
def test_headers_beyond_the_limit_are_431(service, is_whole: bool) -> None:
    _, _, address = service
    text = (
        f"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
        f"Authorization: Bearer {address.token}\r\nX-Long: {'x' * 27_000}\r\n\r\n".encode()
    )
    with socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as wire:
        wire.sendall(text if is_whole else text[:20_000])
        answer = wire.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_headers_within_the_limit_are_taken(service) -> None:
    _, _, address = service
    assert send(address, **{"X-Long": "x" * 15_000})[0] == 200


def test_what_is_no_text_is_422(service) -> None:
    status, answer = send(service[2], "/v1/apply", "POST", b"\xff\xfe")
    assert (status, answer["errors"][0]["what"]) == (422, "the file is not UTF-8 text")


def test_a_bug_is_500_and_the_service_goes_on(service) -> None:
    _, _, address = service
    assert send(address, "/v1/apply", "POST", b"bug")[0] == 500
    assert send(address)[0] == 200


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["name", "pools", "feeds", "tables", "queries", "x"]), inner)
        ),
        max_leaves=20,
    ).map(lambda tree: json.dumps(tree).encode())
)
def test_whatever_is_sent_is_answered_with_a_sentence(service, body: bytes) -> None:
    _, _, address = service
    status, answer = send(address, "/v1/apply", "POST", body)
    if body in (b"late", b"bug"):
        return
    assert status == 422
    assert answer["errors"]
    assert all(each["what"] and each["remedy"] for each in answer["errors"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sent=st.binary(min_size=1, max_size=200)
    | st.binary(max_size=60).map(lambda rest: b"GET /v1/status HTTP/1.1\r\n" + rest + b"\r\n\r\n")
)
def test_what_is_no_request_ends_its_connection_and_nothing_else(service, sent: bytes) -> None:
    _, _, address = service
    with socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert b"200 OK" not in connection.recv(1 << 16)
    assert send(address)[0] == 200


def test_who_connects_and_says_nothing_is_shut_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(server, "HEADERS_MAX_S", 0.2)
    with (
        running(tmp_path) as (_, _, address),
        socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(b"GET /v1/status HT")
        assert connection.recv(1) == b""


def test_who_sends_its_body_for_ever_is_told_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(guard.Guard.__init__, "__defaults__", (0.3,))
    with (
        running(tmp_path) as (site, _, address),
        socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as connection,
    ):
        head = f"POST /v1/apply HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
        head += f"Authorization: Bearer {address.token}\r\nContent-Length: 100\r\n\r\nname"
        connection.sendall(head.encode())
        assert b" 408 " in connection.recv(1 << 16)
        assert site.applied == []


def test_there_are_so_many_connections_and_no_more(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    with running(tmp_path) as (_, _, address):
        held = [socket.create_connection(("127.0.0.1", address.port)) for _ in range(3)]
        for connection in held:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.2)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            send(address)
        for connection in held:
            connection.close()
        give_up_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up_at:
            try:
                assert send(address)[0] == 200
                return
            except (ConnectionError, http.client.HTTPException):
                time.sleep(0.05)
        raise AssertionError("nobody is heard any more")


def test_one_file_is_applied_at_a_time(service) -> None:
    site, _, address = service
    site.decided.clear()
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(send(address, "/v1/apply", "POST", b"x")[0]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    while not site.applied:
        time.sleep(0.01)
    assert send(address)[0] == 200  # who asks for the status does not wait for it
    assert len(site.applied) == 1
    site.decided.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == [422] * 4


# -- asking ------------------------------------------------------------------------------------------------


def test_the_client_gets_answers_and_the_errors_as_they_were(service) -> None:
    _, path, _ = service
    assert ask(path, "GET", "/v1/status") == {"tables": []}
    with pytest.raises(DefinitionErrors) as found:
        ask(path, "POST", "/v1/apply", b"name: x\npools: {}\ntables: {}\n")
    assert all(isinstance(each.place, Place) for each in found.value.errors)
    with pytest.raises(InputError, match="the file is empty"):
        ask(path, "POST", "/v1/apply", b"")
    with pytest.raises(NoAnswer):
        ask(path, "POST", "/v1/apply", b"late")
    with pytest.raises(InputError, match="404"):
        ask(path, "GET", "/v1/other")


def test_where_nobody_runs_the_client_says_so(tmp_path: Path) -> None:
    path = tmp_path / "warehouse" / "_freshline" / "service.json"
    path.parent.mkdir(parents=True)
    texts = [None, b"", b"{", b"[]", b'{"url": "http://127.0.0.1:1"}', b'{"url": 5, "token": "x"}']
    texts += [
        b'{"url": "http://evil.example:80", "token": "x"}',
        b'{"url": "http://127.0.0.1:x", "token": "x"}',
    ]
    texts += [b'{"url": "http://127.0.0.1:9", "token": "a\\nb"}', b"\xff", b"[" * 100_000]
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    texts.append(json.dumps({"url": f"http://127.0.0.1:{port}", "token": "x"}).encode())
    for text in texts:
        if text is not None:
            path.write_bytes(text)
        with pytest.raises(InputError, match=r"no warehouse runs with the storage .*warehouse\. Start it"):
            ask(path, "GET", "/v1/status")


def test_the_port_of_a_run_that_is_gone_may_be_somebody_elses(tmp_path: Path) -> None:
    with running(tmp_path / "other") as (_, _, other):
        path = tmp_path / "_freshline" / "service.json"
        path.parent.mkdir()
        ServiceAddress(other.url, "of another run").write(path)
        with pytest.raises(InputError, match="no warehouse runs"):
            ask(path, "GET", "/v1/status")


def test_a_proxy_of_the_environment_is_not_asked(service, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert ask(service[1], "GET", "/v1/status") == {"tables": []}
