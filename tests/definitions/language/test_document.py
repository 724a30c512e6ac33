"""YAML as a plain tree with places."""

from decimal import Decimal
from pathlib import Path

import pytest

from freshline.base.errors import InputError, Place
from freshline.definitions.language.document import Document, parse, read


def document(text: str) -> Document:
    return parse(text, "freshline.yml")


def failure(text: str) -> str:
    with pytest.raises(InputError) as raised:
        document(text)
    return str(raised.value)


def test_scalars_are_what_people_mean() -> None:
    text = """
    word: packets
    quoted: "12"
    count: 12
    negative: -3
    rate: 0.10
    small: 1e-3
    quoted_exponent: "1e-3"
    time: 1:30
    octal: 010
    hexadecimal: 0x1F
    thousands: 1_000
    infinity: .inf
    day: 2026-01-31
    flag: yes
    other: off
    nothing: ~
    left_empty:
    list: [1, a]
    block: |
      SELECT 1
    """
    assert document(text).tree == {
        "word": "packets",
        "quoted": "12",
        "count": 12,
        "negative": -3,
        "rate": Decimal("0.10"),
        "small": Decimal("0.001"),
        "quoted_exponent": "1e-3",
        "time": "1:30",
        "octal": "010",
        "hexadecimal": "0x1F",
        "thousands": "1_000",
        "infinity": ".inf",
        "day": "2026-01-31",
        "flag": True,
        "other": False,
        "nothing": None,
        "left_empty": None,
        "list": [1, "a"],
        "block": "SELECT 1\n",
    }


def test_a_decimal_keeps_the_digits_that_were_written() -> None:
    assert str(document("rate: 0.1000000000000000055511151231257827").tree["rate"]) == (
        "0.1000000000000000055511151231257827"
    )


def test_a_place_is_the_line_of_the_key() -> None:
    text = (
        "name: network\ntables:\n  packets:\n    feed: packets\n  hosts: {sources: [packets,\n    flows]}\n"
    )
    places = document(text).place
    assert places(()) == Place("freshline.yml", 1)
    assert places(("tables",)) == Place("freshline.yml", 2)
    assert places(("tables", "packets", "feed")) == Place("freshline.yml", 4)
    assert places(("tables", "hosts", "sources", 1)) == Place("freshline.yml", 6)


def test_a_place_that_is_not_there_is_that_of_its_nearest_parent() -> None:
    places = document("a:\n  b: 1\n").place
    assert places(("a", "c", "d")) == Place("freshline.yml", 1)
    assert places(("a", "b", "c")) == Place("freshline.yml", 2)


def test_merge_keys_bring_in_what_is_not_there_and_keep_its_place() -> None:
    text = "a: &a\n  x: 1\n  y: 1\nb: &b\n  y: 2\n  z: 2\nc:\n  <<: [*a, *b]\n  x: 3\nd: {<<: *b, z: 4}\n"
    merged = document(text)
    assert merged.errors == []
    assert merged.tree["c"] == {"x": 3, "y": 1, "z": 2}
    assert merged.tree["d"] == {"y": 2, "z": 4}
    assert [merged.place(("c", key)).line for key in "xyz"] == [9, 3, 6]


def test_aliases_of_aliases_do_not_explode() -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 60))
    tree = document(f"l0: &l0 [x]\n{levels}").tree
    assert tree["l59"][0] is tree["l58"]


def test_a_long_chain_of_merges_is_followed() -> None:
    links = "".join(f"k{i}: &k{i} {{<<: *k{i - 1}}}\n" for i in range(1, 3000))
    assert document(f"k0: &k0 {{x: 1}}\n{links}").tree["k2999"] == {"x": 1}


def test_two_definitions_of_one_name_are_reported_with_both_lines() -> None:
    twice = document("tables:\n  a: 1\n  b: 2\n  a: 3\n  a: 4\n")
    assert twice.tree == {"tables": {"a": 1, "b": 2}}
    assert [str(error) for error in twice.errors] == [
        "freshline.yml:4: two definitions of one name: `a` is already on line 2. "
        "Rename or remove one of the two.",
        "freshline.yml:5: two definitions of one name: `a` is already on line 2. "
        "Rename or remove one of the two.",
    ]


def test_a_mistake_in_what_is_merged_is_reported_once() -> None:
    assert len(document("a: &a {x: 1, x: 2}\nb: {<<: *a}\nc: *a\n").errors) == 1


def test_keys_that_are_not_text_are_reported() -> None:
    odd = document("tables:\n  on: {}\n  1: {}\n  1.5: {}\n  ~: {}\n  [a]: {}\n  2026-01-01: {}\n")
    assert odd.tree == {"tables": {"on": {}, "~": {}, "2026-01-01": {}}}
    assert [str(error) for error in odd.errors] == [
        "freshline.yml:2: YAML reads the key `on` as true, not as text. Quote it or rename it.",
        "freshline.yml:3: YAML reads the key `1` as the number 1, not as text. Quote it or rename it.",
        "freshline.yml:4: YAML reads the key `1.5` as the number 1.5, not as text. Quote it or rename it.",
        "freshline.yml:5: YAML reads the key `~` as nothing, not as text. Quote it or rename it.",
        "freshline.yml:6: a key is a list or a mapping, not text. Quote it or rename it.",
    ]


@pytest.mark.parametrize(
    "text", ["a: &a\n  b: *a\n", "a: &a\n- *a\n", "a: &a\n  b:\n    <<: *a\n", "&a\n<<: *a\n"]
)
def test_an_alias_inside_of_itself_is_refused(text: str) -> None:
    assert failure(text).endswith(
        ": an alias is inside the value that it repeats, which would never end. "
        "Move the alias out of what its anchor marks."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: the file is empty. Define `name`, `pools` and `tables` in it."),
        ("# nothing yet\n", "1: the file is empty. Define `name`, `pools` and `tables` in it."),
        (
            "\n- a\n",
            "2: the file is not a mapping of keys. Begin with keys such as `name: network` and `tables:`.",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "2: the file holds several YAML documents. Keep one of them, and remove the `---` between them.",
        ),
        (
            "a: 1\nb: c: d\n",
            "2: the YAML does not parse: mapping values are not allowed in this context. "
            "Check the indentation, quotes, brackets and colons there and just above.",
        ),
        (
            "a: [1,\nb: 2\n",
            "3: the YAML does not parse: did not find expected ',' or ']' "
            "(while parsing a flow sequence, line 1). "
            "Check the indentation, quotes, brackets and colons there and just above.",
        ),
        (
            "a:\n\tb: 1\n",
            "2: the YAML does not parse: found character that cannot start any token "
            "(while scanning for the next token, line 2). Indent with spaces: YAML allows no tabs there.",
        ),
        (
            "a: *b\n",
            "1: the YAML does not parse: found undefined alias. "
            "Check the indentation, quotes, brackets and colons there and just above.",
        ),
        (
            "a: 1\nb: \x01\n",
            "2: there is a control character, '\\x01'. Remove it, or write it as an escape in double quotes.",
        ),
        ("a:\n  b: !secret c\n", "2: the tag `!secret` has no meaning here. Remove it."),
        ("a: !!set {b}\n", "1: the tag `!!set` has no meaning here. Remove it."),
        (
            "a:\n  <<: 5\n",
            "2: `<<` merges something that is not a mapping. "
            "Give it the alias of a mapping, such as `<<: *defaults`, or a list of them.",
        ),
    ],
)
def test_what_is_not_a_document_is_refused_with_line_and_remedy(text: str, message: str) -> None:
    assert failure(text) == f"freshline.yml:{message}"


@pytest.mark.parametrize("text", ["[" * 200_000, "a:\n" + "\n".join(" " * i + "a:" for i in range(1, 500))])
def test_endless_nesting_is_refused(text: str) -> None:
    assert "the YAML does not parse: more than 100 levels of nesting. " in failure(text)


def test_a_file_is_read_with_or_without_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "freshline.yml"
    path.write_text("name: überwachung\n", encoding="utf-8-sig")
    assert read(path).tree == read(str(path)).tree == {"name": "überwachung"}
    assert read(path).place(("name",)) == Place(str(path), 1)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path / "none.yml")
    assert str(raised.value) == (
        f"{tmp_path}/none.yml: there is no such file. "
        "Create it, or give the path of the file that defines your warehouse."
    )


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}: the file cannot be read (Is a directory). Give the path of a file that you may read."
    )


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "freshline.yml"
    path.write_bytes("name: x\nstorage: überwachung\n".encode("latin-1"))
    with pytest.raises(InputError) as raised:
        read(path)
    assert str(raised.value) == f"{path}:2: the file is not UTF-8 text. Save it as UTF-8."
