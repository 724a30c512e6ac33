"""Placements that nodes agree on."""

from pathlib import Path

from freshline.storage.control.placements import Placements


def test_the_last_one_counts(tmp_path: Path) -> None:
    placements = Placements(tmp_path / "placements")
    assert placements.newest() == (0, None)
    assert placements.add({"nodes": {"a": "edge"}}, 0)
    assert placements.add({"nodes": {"a": "centre"}}, 1)
    assert placements.newest() == (2, {"nodes": {"a": "centre"}})


def test_of_two_that_make_one_together_the_first_counts(tmp_path: Path) -> None:
    one, other = Placements(tmp_path), Placements(tmp_path)
    assert (one.newest(), other.newest()) == ((0, None), (0, None))
    assert one.add({"by": "one"}, 0)
    assert not other.add({"by": "other"}, 0)
    assert other.newest() == (1, {"by": "one"})


def test_a_damaged_one_does_not_count_and_is_not_written_again(tmp_path: Path) -> None:
    placements = Placements(tmp_path)
    assert placements.add({"by": "one"}, 0)
    (tmp_path / "000002.json").write_text('{"by": ')
    assert placements.newest() == (1, {"by": "one"})
    assert placements.add({"by": "another"}, 1)
    assert placements.newest() == (3, {"by": "another"})
    assert (tmp_path / "000002.json").exists()
