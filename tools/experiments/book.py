"""The tables and plots of the book: copied from a run of all experiments into docs/plots, and into the chapters.

A chapter has a line `<!-- table NAME -->`, and what follows it up to the next empty line is that table, made from the CSV
files in docs/plots.
"""

import csv
import os
import re
import shutil

from experiments import loops, machine, matrix, readahead, streams, stride
from experiments.table import Table

DOCS = os.path.join(machine.ROOT, "docs")
PLOTS = os.path.join(DOCS, "plots")
MARKED = re.compile(r"(<!-- table ([\w-]+) -->\n)(?:\|.*\n)*")


def all_of(row, **wanted):
    return all(row[key] in (value if isinstance(value, tuple) else (value,)) for key, value in wanted.items())


def chosen(columns, keys):
    return [column for column in columns if column.key in keys.split()]


# Table in a chapter: CSV file, which rows, the experiment's columns, which of them.
TABLES = {
    "stride": ("stride-sparse", lambda row: all_of(row, retry=("hold", "once"), lock="vma"), stride.COLUMNS,
               "policy window around drop retry touched retries total_us cost_ns cost_percent"),
    "stride-disk": ("stride-disk", lambda row: True, stride.COLUMNS,
                    "policy retry touched retries waits total_us cost_ns cost_percent"),
    "case-1-and-2": ("loops", lambda row: all_of(row, disk="serial", order="own", writer=("none", "bare"),
                                                 retry=("hold", "once"), threads=("1", "4", "8")),
                     loops.COLUMNS, "threads writer retry end_us slower_percent loops_per_s across"),
    "loop-2010": ("loops", lambda row: all_of(row, disk="serial", order="random", writer=("bare", "touch"),
                                              retry=("hold", "once"), threads=("1", "4")),
                  loops.COLUMNS, "threads writer retry loops_per_s times turn_99_ns turn_longest_ns end_us across"),
    "matrix": ("matrix", lambda row: all_of(row, pin="1"), matrix.COLUMNS,
               "lock retry drop loops_per_s turn_99_ns end_us retries across"),
    "pressure": ("pressure", lambda row: all_of(row, lock="mmap", retry=("once", "many", "recheck")), matrix.COLUMNS,
                 "retry drop pin loops_per_s end_us waits misses miss_percent across"),
    "streams": ("streams", lambda row: all_of(row, way="short", streams="1") or all_of(row, way="long", streams=("2", "8")),
                streams.COLUMNS,
                "way streams policy window user_us system_us cpu_percent total_us requests mean_kib waits"),
    "stream": ("readahead-stream", lambda row: True, readahead.AGAINST,
               "pattern window streams ondemand_requests stream_requests ondemand_waits stream_waits ondemand_unused "
               "stream_unused time_percent"),
}
PICTURES = ("loops-bare.svg", "streams-long.svg", "readahead-mmap-from-0.svg", "readahead-read-backward.svg",
            "readahead-mmap-random.svg", "readahead-thrash-mmap.svg")


def value_of(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def table_text(name):
    file, wanted, columns, keys = TABLES[name]
    with open(os.path.join(PLOTS, f"{file}.csv"), encoding="utf-8", newline="") as text:
        rows = [row for row in csv.DictReader(text) if wanted(row)]
    rows = [{key: value_of(value) for key, value in row.items()} for row in rows]
    return Table(name, "", chosen(columns, keys), rows).markdown()


def with_tables(text):
    """A chapter's text with its tables as the CSV files have them."""
    return MARKED.sub(lambda found: found.group(1) + table_text(found.group(2)), text)


def chapters():
    for name in sorted(os.listdir(DOCS)):
        if name.endswith(".md"):
            yield os.path.join(DOCS, name)


def copy_from(folder):
    """Takes a whole run's files over into the book."""
    os.makedirs(PLOTS, exist_ok=True)
    for name in [*PICTURES, *sorted({f"{file}.csv" for file, *_ in TABLES.values()})]:
        shutil.copyfile(os.path.join(folder, name), os.path.join(PLOTS, name))
    for path in chapters():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_tables(text))
