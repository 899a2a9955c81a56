"""A table of results: CSV with plain numbers, Markdown with readable ones."""

import csv
import os
from dataclasses import dataclass


def whole(value):
    return f"{value:,}"


def seconds(microseconds):
    return f"{microseconds / 1e6:.3f} s"


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:,.3f} ms"


def percent(value):
    return f"{round(value, 2) + 0.0:.2f} %"


def decimal(value):
    return f"{value:,.1f}"


@dataclass(frozen=True)
class Column:
    key: str              # in the CSV; a unit is part of it
    title: str
    show: callable = str  # one of the functions above


@dataclass
class Table:
    name: str             # NAME.csv
    caption: str
    columns: list
    rows: list            # dictionaries; a missing or None value is an empty field

    def write_csv(self, folder):
        with open(os.path.join(folder, f"{self.name}.csv"), "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([column.key for column in self.columns])
            for row in self.rows:
                out.writerow([plain(row.get(column.key)) for column in self.columns])

    def markdown(self):
        lines = [f"| {' | '.join(column.title for column in self.columns)} |",
                 f"|{'|'.join('---' if self.is_text(column) else '--:' for column in self.columns)}|"]
        lines += [f"| {' | '.join(self.cell(row, column) for column in self.columns)} |" for row in self.rows]
        return "\n".join(lines) + "\n"

    @staticmethod
    def is_text(column):
        return column.show is str

    @staticmethod
    def cell(row, column):
        value = row.get(column.key)
        return "" if value is None else column.show(value)


def plain(value):
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
