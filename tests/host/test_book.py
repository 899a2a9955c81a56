"""Tables and plots in the book are those of the files in docs/plots, which a run of the experiments made."""

import re
import sys

import pytest

from conftest import ROOT

sys.path[:0] = [str(ROOT / "tools")]
from experiments import book  # noqa: E402, behind its path

CHAPTERS = sorted((ROOT / "docs").glob("*.md"))


def read(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_tables_are_those_of_the_files(chapter):
    assert book.with_tables(read(chapter)) == read(chapter)


def test_each_table_stands_in_a_chapter():
    named = [name for chapter in CHAPTERS for _, name in book.MARKED.findall(read(chapter))]
    assert sorted(named) == sorted(book.TABLES)


def test_each_file_is_used():
    text = "".join(read(chapter) for chapter in (*CHAPTERS, ROOT / "README.md"))
    shown = set(re.findall(r"plots/([\w-]+\.svg)", text))
    there = {path.name for path in (ROOT / "docs" / "plots").iterdir()}
    assert shown == set(book.PICTURES)
    assert there == shown | {f"{file}.csv" for file, *_ in book.TABLES.values()}


def test_a_table_is_made_anew_where_it_has_changed():
    marker = "<!-- table stride-disk -->\n"
    made = book.with_tables(f"before\n\n{marker}| old |\n|---|\n\nbehind\n")
    assert made == f"before\n\n{marker}{book.table_text('stride-disk')}\nbehind\n"
    assert "| old |" not in made and "| ondemand | hold |" in made
