"""Threads that hang in Spark's analysis take neither their class nor the service with them."""

import json
import threading
from pathlib import Path
from typing import Any

from asked_site import asked_service, body_of, post
from freshline.service.address import ServiceAddress
from freshline.service.question_threads import SLOW_OF_CLASS
from patience import PATIENCE_S

HANGS = "SELECT with pains"


def asked(address: ServiceAddress, sql: str, **others: Any) -> tuple[int, Any]:
    status, _, text = post(address, body_of(sql, **others))
    return status, json.loads(text)


def test_who_asks_what_hangs_gets_no_answer_and_the_class_goes_on(tmp_path: Path) -> None:
    with asked_service(tmp_path) as (site, _, address):
        try:
            for _ in range(3):  # more than a class has threads
                assert asked(address, HANGS, deadline="300ms")[0] == 504
            assert asked(address, "SELECT 1", deadline="60s")[0] == 200
        finally:
            site.may_go_on.set()


def test_a_class_whose_threads_all_hang_is_told_to_wait_and_no_other_is(tmp_path: Path) -> None:
    with asked_service(tmp_path) as (site, _, address):
        hanging = [
            threading.Thread(target=asked, args=(address, HANGS), kwargs={"deadline": "15s"})
            for _ in range(SLOW_OF_CLASS)
        ]
        try:
            for thread in hanging:
                thread.start()
            waited = threading.Event()
            while asked(address, "SELECT 1", deadline="60s")[0] != 429:
                assert not waited.wait(0.1)
            assert asked(address, "SELECT 1", **{"class": "guests"}, deadline="60s")[0] == 200
        finally:
            site.may_go_on.set()
        for thread in hanging:
            thread.join(PATIENCE_S)
        while asked(address, "SELECT 1", deadline="60s")[0] != 200:
            assert not waited.wait(0.1)
