"""Questions over real HTTP: what is asked, what is refused, and who hangs up."""

import io
import json
import socket
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import freshline
from asked_site import CLASSES, ROWS, Site, asked_service, body_of, post
from freshline.base.errors import InputError
from freshline.cli.main import app as cli
from freshline.service import question_intake as asking
from freshline.service.address import ServiceAddress
from freshline.service.client import NoAnswer, ask
from freshline.service.failures import STATUSES, stopping
from patience import PATIENCE_S

Service = tuple[Site, Path, ServiceAddress]


@pytest.fixture(scope="module")
def one_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with asked_service(tmp_path_factory.mktemp("asked")) as parts:
        yield parts


@pytest.fixture
def service(one_service: Service) -> Service:
    one_service[0].asked.clear()
    return one_service


def told(address: ServiceAddress, body: bytes, **headers: str) -> tuple[int, Any]:
    status, _, text = post(address, body, **headers)
    return status, json.loads(text)


def test_a_question_is_answered_with_rows_intervals_and_how_much_was_read(service: Service) -> None:
    site, path, address = service
    status, answer = told(address, body_of(share=0.125))
    (asked,) = site.asked
    assert (status, answer) == (200, asked.record())
    assert (asked.question.deadline_us, asked.question.share) == (2_000_000, Fraction(1, 8))
    assert asked.dropped.wait(PATIENCE_S)  # it is over for the run, too
    assert ask(path, "GET", "/v1/classes") == {"classes": CLASSES}


@pytest.mark.parametrize(
    ("accept", "arrow"),
    [
        (asking.ARROW, True),
        (f"{asking.ARROW}, */*;q=0.1", True),
        (f"text/html, {asking.ARROW};q=0.9, application/json;q=0.5", True),
        (f"{asking.ARROW};q=0", False),
        (f"{asking.ARROW};q=x", False),
        (f"application/json, {asking.ARROW};q=0.5", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_rows_come_as_arrow_where_that_is_asked_for(service: Service, accept: str, arrow: bool) -> None:
    status, headers, text = post(service[2], body_of(), Accept=accept)
    assert status == 200
    assert headers["Content-Type"] == (asking.ARROW if arrow else "application/json")
    if not arrow:
        assert json.loads(text)["rows"] == ROWS
        return
    table = pa.ipc.open_stream(io.BytesIO(text)).read_all()
    assert [list(row.values()) for row in table.to_pylist()] == ROWS
    about = json.loads(table.schema.metadata[b"freshline"])
    assert about["parts"] == {"done": 2, "of": 8}
    assert "rows" not in about


def test_an_answer_that_is_too_long_for_json_is_said_so_and_comes_as_arrow(
    service: Service, monkeypatch
) -> None:
    monkeypatch.setattr(asking, "JSON_ROWS_MAX", 1)
    status, record = told(service[2], body_of())
    assert (status, record["error"]) == (
        422,
        {
            "code": "not_supported",
            "message": "the answer has 2 rows, and as JSON it may have 1",
            "remedy": f"Add a LIMIT, or send `Accept: {asking.ARROW}`",
        },
    )
    assert post(service[2], body_of(), Accept=asking.ARROW)[0] == 200


SQL, CLASS, DEADLINE = '"sql": "SELECT 1"', '"class": "operators"', '"deadline": "2s"'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "bad_request"),
        ("nonsense", "bad_request"),
        ("[]", "bad_request"),
        ("null", "bad_request"),
        ("[" * 100_000, "bad_request"),
        ("1" * 10_000, "bad_request"),
        (f"{{{SQL}, {CLASS}}}", "bad_request"),
        (f"{{{SQL}, {DEADLINE}}}", "bad_request"),
        (f"{{{CLASS}, {DEADLINE}}}", "bad_request"),
        (f"{{{SQL}, {CLASS}, {DEADLINE}, {SQL}}}", "bad_request"),
        (f'{{{SQL}, {CLASS}, {DEADLINE}, "shares": 1}}', "bad_request"),
        (f'{{"sql": 5, {CLASS}, {DEADLINE}}}', "bad_request"),
        (f'{{"sql": "SELECT \\ud800", {CLASS}, {DEADLINE}}}', "bad_request"),
        (f'{{{SQL}, "class": ["operators"], {DEADLINE}}}', "bad_request"),
        *(
            (f'{{{SQL}, {CLASS}, {DEADLINE}, "share": {share}}}', "bad_request")
            for share in ("0", "-0.1", "1.01", "true", '"0.5"', "null", "NaN", "Infinity", "1e999", "[]")
        ),
        *(
            (f'{{{SQL}, {CLASS}, "deadline": {deadline}}}', "bad_deadline")
            for deadline in ("2", "null", '""', '"2"', '"0s"', '"-2s"', '"2 parsecs"', '"101s"', '"1h"')
        ),
        (f'{{{SQL}, {CLASS}, "deadline": "{"1s" * 1_000}"}}', "bad_deadline"),
        (f'{{"sql": "DROP TABLE x", {CLASS}, {DEADLINE}}}', "bad_sql"),
        (f'{{{SQL}, "class": "Operators", {DEADLINE}}}', "unknown_class"),
        (f'{{{SQL}, "class": "operators\'; --", {DEADLINE}}}', "unknown_class"),
        (f'{{{SQL}, "class": "", {DEADLINE}}}', "unknown_class"),
        (f'{{"sql": "SELECT too much", {CLASS}, {DEADLINE}}}', "rejected"),
        (f'{{"sql": "SELECT late", {CLASS}, {DEADLINE}}}', "stopping"),
        (f'{{"sql": "SELECT slowly", {CLASS}, {DEADLINE}}}', "no_answer"),
        (f'{{"sql": "bug", {CLASS}, {DEADLINE}}}', "failed"),
    ],
)
def test_what_cannot_be_answered_is_told_with_its_code_and_a_remedy(
    service: Service, body: str, code: str
) -> None:
    _, _, address = service
    status, headers, text = post(address, body.encode())
    answer = json.loads(text)
    assert (status, answer["error"]["code"]) == (STATUSES[code], code), answer
    assert answer["error"]["message"]
    assert answer["error"]["remedy"]
    assert headers["Retry-After"] == ("2" if code == "rejected" else None)
    assert told(address, body_of())[0] == 200


def test_the_statuses_are_those_that_are_promised() -> None:
    promised = {
        400: {"bad_request", "bad_sql", "bad_deadline"},
        401: {"unauthorized"},
        413: {"too_large"},
        422: {"unknown_class", "unknown_table", "not_supported", "bad_definition"},
        429: {"rejected"},
        503: {"stopping"},
        504: {"no_answer", "undecided"},
    }
    assert {
        status: {code for code in STATUSES if STATUSES[code] == status} for status in promised
    } == promised


def test_two_megabytes_are_413_with_and_without_the_token(service: Service) -> None:
    site, _, address = service
    huge = body_of("SELECT " + "x" * (2 << 20))
    assert told(address, huge)[0] == 413
    assert told(address, huge, Authorization="Bearer x")[0] == 401
    assert site.asked == []


def _sent(address: ServiceAddress, body: bytes, count: int | None = None) -> socket.socket:
    """A connection on which so much of a question was sent."""
    head = f"POST /v1/query HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
    head += f"Authorization: Bearer {address.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S)
    connection.sendall(head.encode() + body[:count])
    return connection


def test_who_hangs_up_halfway_frees_the_question(service: Service) -> None:
    site, _, address = service
    whole = body_of("SELECT for ever", deadline="100s")
    for sent in (10, len(whole)):
        with _sent(address, whole, sent):
            if sent == len(whole):
                site.wait_for(1)
    assert site.asked[0].dropped.wait(PATIENCE_S)
    assert len(site.asked) == 1  # half a question is none
    assert told(address, body_of())[0] == 200


def test_a_flood_of_one_class_is_turned_away_and_another_is_heard(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(asking, "WAITING_MAX", 4)
    assert asking.waiting_max(1) == 4
    with asked_service(tmp_path) as (site, _, address):
        answers: list[int] = []
        for_ever = body_of("SELECT for ever", **{"class": "guests"}, deadline="100s")
        threads = [
            threading.Thread(target=lambda: answers.append(post(address, for_ever)[0])) for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        site.wait_for(20)
        assert told(address, body_of())[0] == 200
        assert told(address, for_ever)[0] == 429
        for asked in site.asked:
            if not asked.reply.done():
                asked.reply.set_exception(stopping())
        for thread in threads:
            thread.join(PATIENCE_S)
        assert sorted(answers) == [429] * 16 + [503] * 4


def test_who_hangs_up_while_sql_is_read_takes_no_thread_from_another_class(tmp_path: Path) -> None:
    with asked_service(tmp_path) as (site, _, address):
        for number in range(32):
            body = body_of("SELECT with pains", **{"class": "guests"}, deadline="100s")
            with _sent(address, body):
                site.wait_for(number + 1)
            assert site.asked[number].dropped.wait(PATIENCE_S)
        assert told(address, body_of())[0] == 200
        site.may_go_on.set()
        assert told(address, body_of(**{"class": "guests"}))[0] == 200


def test_a_deadline_that_the_run_forgets_is_no_answer(service: Service, monkeypatch) -> None:
    monkeypatch.setattr(asking, "_GRACE_S", 0.0)
    assert told(service[2], body_of("SELECT for ever", deadline="10ms"))[0] == 504
    assert service[0].asked[0].dropped.wait(PATIENCE_S)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["sql", "class", "deadline"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=200)
    | JSON.map(lambda tree: json.dumps(tree).encode())
    | st.fixed_dictionaries(
        {"sql": JSON | st.just("SELECT 1"), "class": JSON | st.just("operators"), "deadline": JSON},
        optional={"share": JSON},
    ).map(lambda tree: json.dumps(tree).encode())
)
def test_whatever_is_asked_is_answered_or_refused_with_a_sentence(service: Service, body: bytes) -> None:
    status, answer = told(service[2], body)
    assert status in (200, 400, 422)
    if status != 200:
        assert set(answer) == {"error"}
        assert set(answer["error"]) == {"code", "message", "remedy"}


# -- from Python and from the command line -----------------------------------------------------------------

PROJECT = """\
name: asked
pools: {updates: {tracks: 1}}
feeds: {events: {path: landing, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 10s}}
tables: {events: {feed: events, cost: {startup: 1s}}}
"""


@pytest.fixture(scope="module")
def asked_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    with asked_service(folder):
        yield folder


def test_python_gets_answers_and_is_told_why_there_are_none(asked_project: Path) -> None:
    about: dict[str, Any] = {"class_name": "operators", "deadline": "2s", "project": asked_project}
    assert freshline.query("SELECT 1", share=0.5, **about)["share"] == 0.5
    with pytest.raises(NoAnswer, match=r"not admitted.*Try again in 2 s") as found:
        freshline.query("SELECT too much", **about)
    assert found.value.code == "rejected"
    with pytest.raises(InputError, match="this is no SELECT"):
        freshline.query("DROP TABLE x", **about)
    assert "query" in freshline.__all__
    with pytest.raises(AttributeError):
        _ = freshline.nothing


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["SELECT 1", "--class", "operators"], 0, ""),
        (["SELECT 1", "--class", "operators", "--share", "0.5"], 0, ""),
        (["SELECT too much", "--class", "operators"], 1, "not admitted"),
        (["SELECT slowly", "--class", "operators"], 1, "the deadline passed"),
        (["SELECT late", "--class", "operators"], 1, "stopping"),
        (["bug", "--class", "operators"], 1, "a bug of Freshline"),
        (["nonsense", "--class", "operators"], 2, "no SELECT"),
        (["SELECT 1", "--class", "nobody"], 2, "no such class"),
        (["SELECT 1", "--class", "operators", "--share", "2"], 2, "`share`"),
    ],
)
def test_the_command_ends_with_0_1_or_2(
    asked_project: Path, arguments: list[str], code: int, said: str
) -> None:
    done = _command(asked_project, *arguments)
    if code == 2:
        assert isinstance(done.exception, InputError)
        assert said in str(done.exception)
        return
    assert (done.exit_code, said in done.stderr) == (code, True), done
    if code == 0:
        assert "3 (2 to 4)" in done.stdout
        assert "- ?" in done.stdout
        assert "2 of 8 parts" in done.stdout


def test_the_command_prints_the_services_json(asked_project: Path, tmp_path: Path) -> None:
    done = _command(asked_project, "SELECT 1", "--class", "operators", "--json")
    assert json.loads(done.stdout)["rows"] == ROWS
    done = _command(asked_project, "SELECT too much", "--class", "operators", "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]["code"]) == (1, "rejected")
    (tmp_path / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    done = _command(tmp_path, "SELECT 1", "--class", "operators")
    assert isinstance(done.exception, InputError)
    assert "no warehouse runs" in str(done.exception)


def _command(folder: Path, *arguments: str) -> Result:
    """An InputError becomes exit code 2 outside (`cli.main`)."""
    return CliRunner().invoke(cli, ["query", *arguments, "--deadline", "2s", "-p", str(folder)])
