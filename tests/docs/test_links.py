"""Links and names of files in README.md, CONTRIBUTING.md, CHANGELOG.md and docs/ lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for path in (ROOT / "docs").rglob("*.md")),
    ]
)
ARCHITECTURE_WORDS_MAX = 2_500
README_LINES_MAX = 140
# Pages that an experiment wrote name the files that its version had.
WRITTEN = [page for page in PAGES if not (page.parent / "results.json").exists()]
# Where a mentioned file may be, as prose leaves these folders out.
FOLDERS = ("", "src", "src/freshline", "src/freshline_lab", "tests", "benchmarks", "scripts", "docs")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_FILE = re.compile(r"[\w./-]*\w\.py\b")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return _CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links of a page to files or anchors that are not there."""
    broken = []
    for target in (*_LINK.findall(text), *_PICTURE.findall(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        linked = text if file == page else text_of(file) if file.suffix == ".md" and file.is_file() else ""
        if not file.exists() or (fragment and fragment not in anchors(linked)):
            broken.append(target)
    return broken


def exists(mentioned: str) -> bool:
    if "/" not in mentioned:
        return any(path.name == mentioned for path in ROOT.glob("[!.]*/**/*.py"))
    return any((ROOT / folder / mentioned).is_file() for folder in FOLDERS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken_links(page, text_of(page)) == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_module_that_a_page_mentions_exists(page: Path) -> None:
    mentioned = {file for code in _CODE.findall(text_of(page)) for file in _FILE.findall(code)}
    assert {file for file in mentioned if not exists(file)} == set()


def test_the_architecture_is_read_in_ten_minutes() -> None:
    words = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split()
    assert len(words) <= ARCHITECTURE_WORDS_MAX


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES_MAX


@pytest.mark.parametrize("file", ["planning/analysis/recovery_periods.py", "service/question_intake.py"])
def test_the_architecture_leads_to_the_two_files_of_its_walks(file: str) -> None:
    """What decides a late table's recovery period, and what writes the HTTP answer."""
    assert f"`{file}`" in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = [path for path in folder.rglob("*.md") if path.name != "README.md"]
    assert [
        name for name in (path.relative_to(folder).as_posix() for path in pages) if name not in index
    ] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "decisions").glob("*/**/*.md")), ids=name_of)
def test_a_decision_has_a_context_a_decision_and_a_consequence(page: Path) -> None:
    heads = re.findall(r"^\*\*(\w+)\.\*\*", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert heads == ["Context", "Decision", "Consequence"]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("`lrm`: why no answer is late, whatever comes", "lrm-why-no-answer-is-late-whatever-comes"),
        ("001: outages and recovery", "001-outages-and-recovery"),
        ("Files that change little (`discard`)", "files-that-change-little-discard"),
        ("See [this](that.md)", "see-this"),
    ],
)
def test_anchors_are_made_as_github_makes_them(heading: str, expected: str) -> None:
    assert anchor(heading) == expected


def test_broken_links_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# Here it is\n", encoding="utf-8")
    text = "# A\n[a](#a) [b](#b) [c](other.md#here-it-is) [d](other.md#there) [e](gone.md) ![f](gone.png) [g](https://x)"
    page.write_text(text, encoding="utf-8")
    assert broken_links(page, text) == ["#b", "other.md#there", "gone.md", "gone.png"]
