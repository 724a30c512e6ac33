"""A YAML file as a plain tree with line numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from freshline.base.errors import InputError, Place
from freshline.base.names import cut

if TYPE_CHECKING:
    _YamlLoader = yaml.SafeLoader
else:
    # The C loader is about ten times faster, but some platforms lack it.
    _YamlLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STANDARD: Final = "tag:yaml.org,2002:"
_STR: Final = f"{_STANDARD}str"
_INT: Final = f"{_STANDARD}int"
_FLOAT: Final = f"{_STANDARD}float"
_BOOL: Final = f"{_STANDARD}bool"
_NULL: Final = f"{_STANDARD}null"
_MERGE: Final = f"{_STANDARD}merge"
_TEXTS: Final = frozenset({_STR, _MERGE, f"{_STANDARD}timestamp", f"{_STANDARD}value"})
_COLLECTIONS: Final = frozenset({f"{_STANDARD}map", f"{_STANDARD}seq"})

_NESTING_MAX: Final = 100
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
# PyYAML reads YAML 1.1, where `1e-3` is text. In YAML 1.2, in JSON and for people it is a number.
_EXPONENT: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_UNPRINTABLE: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_Entries = dict[str, tuple[Node, Node]]  # the keys of a mapping, each with the nodes of key and value


class Document:
    """A file's plain tree (text, int, Decimal, bool, None, list, dict), with the position of each key."""

    def __init__(self, file: str, root: MappingNode) -> None:
        self.file = file
        self.errors: list[InputError] = []  # about keys; the tree exists all the same, to find more errors
        self._root = root
        # By the identity of a node, which all its aliases share, so that aliases cannot explode.
        self._entries: dict[int, _Entries] = {}
        self._converted: dict[int, Any] = {}
        self._open: set[int] = set()
        self._reported: set[int] = set()
        self.tree: dict[str, Any] = self._convert(root)

    def place(self, path: Sequence[str | int]) -> Place:
        """The line of a key path such as ("tables", "traffic", "period"), or of its existing beginning."""
        node: Node = self._root
        line = node.start_mark.line
        for step in path:
            if isinstance(node, MappingNode) and isinstance(step, str):
                entry = self._entries_of(node).get(step)
                if entry is None:
                    break
                line = entry[0].start_mark.line
                node = entry[1]
            elif isinstance(node, SequenceNode) and isinstance(step, int):
                node = node.value[step]
                line = node.start_mark.line
            else:
                break
        return Place(self.file, line + 1)

    def _place_of(self, node: Node) -> Place:
        return Place(self.file, node.start_mark.line + 1)

    def _convert(self, node: Node) -> Any:
        if isinstance(node, ScalarNode):
            return self._convert_scalar(node)
        identity = id(node)
        if identity in self._converted:
            return self._converted[identity]
        if node.tag not in _COLLECTIONS:
            raise self._unknown_tag(node)
        self._check_closed(node)
        self._open.add(identity)
        converted: Any
        if isinstance(node, MappingNode):
            converted = {key: self._convert(value) for key, (_, value) in self._read_entries(node).items()}
        else:
            converted = [self._convert(item) for item in node.value]
        self._open.discard(identity)
        self._converted[identity] = converted
        return converted

    def _convert_scalar(self, node: ScalarNode) -> Any:
        text: str = node.value
        tag = node.tag
        if tag == _STR:
            # Only an unquoted value has an empty style.
            return _decimal(text) if not node.style and _EXPONENT.fullmatch(text) else text
        if tag == _INT:
            return int(text) if _INTEGER.fullmatch(text) else text
        if tag == _FLOAT:
            return _decimal(text)
        if tag == _BOOL:
            return text.lower() in ("true", "yes", "on")
        if tag == _NULL:
            return None
        if tag in _TEXTS:
            return text
        raise self._unknown_tag(node)

    def _entries_of(self, node: MappingNode) -> _Entries:
        entries = self._entries.get(id(node))
        if entries is None:
            entries = self._entries[id(node)] = self._read_entries(node)
        return entries

    def _read_entries(self, node: MappingNode) -> _Entries:
        """The mapping's own keys, which override those that it merges."""
        entries: _Entries = {}
        merged: _Entries = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = self._merged(value_node) | merged
                continue
            key = key_node.value if key_node.tag == _STR else self._odd_key(key_node)
            if key in entries:
                self._report_twice(key, key_node, entries[key][0])
            elif key is not None:
                entries[key] = (key_node, value_node)
        return merged | entries if merged else entries

    def _merged(self, node: Node) -> _Entries:
        """The keys that `<<` merges from a mapping or from a list of mappings; the first mapping wins."""
        merged: _Entries = {}
        for source in node.value if isinstance(node, SequenceNode) else (node,):
            if not isinstance(source, MappingNode):
                raise InputError(
                    "`<<` merges something that is not a mapping",
                    "Give it the alias of a mapping, such as `<<: *defaults`, or a list of them",
                    self._place_of(node),
                )
            self._check_closed(source)
            merged = self._entries_of(source) | merged
        return merged

    def _check_closed(self, node: Node) -> None:
        if id(node) in self._open:
            raise InputError(
                "an alias is inside the value that it repeats, which would never end",
                "Move the alias out of what its anchor marks",
                self._place_of(node),
            )

    def _odd_key(self, node: Node) -> str | None:
        """The text of a key that YAML does not read as text; None if it cannot be a name at all."""
        if isinstance(node, ScalarNode):
            value = self._convert_scalar(node)
            if isinstance(value, str):
                return value
            what = f"YAML reads the key `{node.value}` as {kind_of(value)}, not as text"
            text = node.value if isinstance(value, bool) or value is None else None
        else:
            what, text = "a key is a list or a mapping, not text", None
        if id(node) not in self._reported:
            self._reported.add(id(node))
            self.errors.append(InputError(what, "Quote it or rename it", self._place_of(node)))
        return text

    def _report_twice(self, key: str, second: Node, first: Node) -> None:
        if id(second) not in self._reported:
            self._reported.add(id(second))
            what = f"two definitions of one name: `{key}` is already on line {first.start_mark.line + 1}"
            self.errors.append(InputError(what, "Rename or remove one of the two", self._place_of(second)))

    def _unknown_tag(self, node: Node) -> InputError:
        tag = node.tag.replace(_STANDARD, "!!")
        return InputError(f"the tag `{tag}` has no meaning here", "Remove it", self._place_of(node))


def kind_of(value: object) -> str:
    """The kind of a value of the tree, in words: `true`, `the number 5`, `a list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "text"


def shown(value: object) -> str:
    """A value of the tree as a message shows it: `5`, `'five'`, `a list`."""
    if isinstance(value, str):
        return repr(cut(value))
    return cut(str(value)) if type(value) in (int, Decimal) else kind_of(value)


def read(path: Path | str) -> Document:
    """Reads the document in a file."""
    file = str(path)
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        remedy = "Create it, or give the path of the file that defines your warehouse"
        raise InputError("there is no such file", remedy, Place(file, 0)) from None
    except OSError as error:
        what = f"the file cannot be read ({error.strerror})"
        raise InputError(what, "Give the path of a file that you may read", Place(file, 0)) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("the file is not UTF-8 text", "Save it as UTF-8", Place(file, line)) from None
    return parse(text, file)


def parse(text: str, file: str) -> Document:
    """Parses a document; errors name it `file`."""
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        place = Place(file, text.count("\n", 0, unprintable.start()) + 1)
        what = f"there is a control character, {unprintable.group()!r}"
        raise InputError(what, "Remove it, or write it as an escape in double quotes", place)
    try:
        root = yaml.compose(text, Loader=_Loader)
    except MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    if root is None:
        raise InputError("the file is empty", "Define `name`, `pools` and `tables` in it", Place(file, 1))
    if not isinstance(root, MappingNode):
        remedy = "Begin with keys such as `name: network` and `tables:`"
        raise InputError("the file is not a mapping of keys", remedy, Place(file, root.start_mark.line + 1))
    return Document(file, root)


class _Loader(_YamlLoader):
    """Limits nesting: the C loader recurses on the C stack, and deep nesting would crash the process."""

    nesting = 0

    def descend_resolver(self, parent: Node | None, index: object) -> None:
        self.nesting += 1
        if self.nesting > _NESTING_MAX:
            mark = parent.start_mark if parent else None
            raise MarkedYAMLError(problem=f"more than {_NESTING_MAX} levels of nesting", problem_mark=mark)

    def ascend_resolver(self) -> None:
        self.nesting -= 1


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an infinity or base 60, which are not allowed here
        return text


def _syntax_error(error: MarkedYAMLError, text: str, file: str) -> InputError:
    mark = error.problem_mark
    place = Place(file, mark.line + 1 if mark else 1)
    if error.problem == "but found another document":
        remedy = "Keep one of them, and remove the `---` between them"
        return InputError("the file holds several YAML documents", remedy, place)
    what = f"the YAML does not parse: {error.problem}"
    if error.context:
        since = f", line {error.context_mark.line + 1}" if error.context_mark else ""
        what += f" ({error.context}{since})"
    lines = text.splitlines()
    if mark and mark.line < len(lines) and lines[mark.line][: mark.column + 1].lstrip(" ").startswith("\t"):
        return InputError(what, "Indent with spaces: YAML allows no tabs there", place)
    return InputError(what, "Check the indentation, quotes, brackets and colons there and just above", place)
