"""What is remembered of requests: their costs, of so many texts and no more."""

from pathlib import Path

from freshline.live.requests import request_costs as request_book
from freshline.live.requests.request_costs import RequestCosts, RequestExtent
from freshline.planning.costs.iterations import PastPart
from freshline.sql.slices import SLICES
from freshline.storage.control.history import History

EXTENT = RequestExtent(rows=256_000, size=2_560_000)


def ask(
    book: RequestCosts, text: str, begin_us: int = 50_000, slice_us: int = 1_000, answers: int = 8
) -> None:
    for number in range(answers):
        parts = [PastPart(number, begin_us + slice_us * size, size, 1_000 * size) for size in (32, 224)]
        book.enter(text, EXTENT, parts)


def test_costs_are_learned_by_text_and_found_again_in_the_next_run(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        book = RequestCosts(history)
        before = book.cost("SELECT 1", EXTENT)
        ask(book, "SELECT 1")
        learned = book.cost("SELECT 1", EXTENT)
        assert learned != before
        assert abs(learned.us(SLICES) / 306_000 - 1) < 0.01
    with History(tmp_path / "history.sqlite") as history:
        assert RequestCosts(history).cost("SELECT 1", EXTENT) == learned


def test_what_nobody_has_asked_costs_what_bytes_have_cost_others(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        book = RequestCosts(history)
        ask(book, "SELECT 1")
        unseen = book.cost("SELECT 2", EXTENT)
        assert abs(unseen.us(SLICES) / 306_000 - 1) < 0.01
        twice = book.cost("SELECT 3", RequestExtent(EXTENT.rows, 2 * EXTENT.size))
        assert abs(twice.us(SLICES) / 562_000 - 1) < 0.01


def test_the_first_answer_in_a_run_counts_for_nothing(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        book = RequestCosts(history)
        ask(book, "SELECT 1")
        learned = book.cost("SELECT 1", EXTENT)
        again = RequestCosts(history)
        ask(again, "SELECT 1", begin_us=5_000_000, answers=1)
        assert again.cost("SELECT 1", EXTENT) == learned


def test_a_text_that_is_refused_for_its_cost_is_forgotten_bit_by_bit(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        book = RequestCosts(history)
        ask(book, "SELECT 1", begin_us=9_000_000)
        ask(book, "SELECT 2", answers=100)
        for _ in range(100):
            book.forget_oldest("SELECT 1")
        assert book.cost("SELECT 1", EXTENT).us(SLICES) < 1_000_000


def test_so_many_texts_are_remembered_and_no_more(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(request_book, "_TEXTS_MAX", 4)
    monkeypatch.setattr(request_book, "_TEXTS_MORE", 2)
    with History(tmp_path / "history.sqlite") as history:
        book = RequestCosts(history)
        for number in range(50):
            ask(book, f"SELECT {number}", answers=2)
            assert len(book._known) <= 6
        texts = {name for (name,) in history._rows("SELECT DISTINCT query FROM parts", ())}
        assert len(texts) <= 8
        assert history.parts(request_book._key("SELECT 49"))
