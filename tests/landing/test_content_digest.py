"""What tells two files of one name apart."""

from pathlib import Path

from freshline.landing.digest import content_digest

MIB = 1 << 20


def test_files_of_one_content_have_one_digest(tmp_path: Path) -> None:
    for name, content in {"a": b"one", "b": b"one", "c": b"two", "d": b""}.items():
        (tmp_path / name).write_bytes(content)
    a, b, c, d = (content_digest(tmp_path / name) for name in "abcd")
    assert a == b
    assert len({a, c, d}) == 3
    assert len(a) == 32


def sparse(path: Path, size: int, mark_at: int) -> Path:
    """A file of zeroes with one other byte; it takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(mark_at)
        file.write(b"x")
    return path


def test_a_large_file_is_known_by_its_size_beginning_and_end(tmp_path: Path) -> None:
    size = 65 * MIB
    digests = {
        at: content_digest(sparse(tmp_path / "large", size, at)) for at in (0, 30 * MIB, 31 * MIB, size - 1)
    }
    assert digests[30 * MIB] == digests[31 * MIB]
    longer = content_digest(sparse(tmp_path / "large", size + MIB, 30 * MIB))
    assert len({*digests.values(), longer}) == 4


def test_up_to_64_mib_every_byte_counts(tmp_path: Path) -> None:
    size = 64 * MIB
    assert content_digest(sparse(tmp_path / "a", size, 30 * MIB)) != content_digest(
        sparse(tmp_path / "b", size, 31 * MIB)
    )
