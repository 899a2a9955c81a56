"""What an experiment hands over, and the folder that is made of it: report.md, a CSV for each table, SVG plots."""

import os
from dataclasses import dataclass, field


@dataclass
class Section:
    title: str
    text: str                                    # what is measured and what it shows, Markdown
    boots: list                                  # whose machines and disks are stated
    tables: list = field(default_factory=list)
    plots: dict = field(default_factory=dict)    # NAME.svg: its text
    claims: list = field(default_factory=list)   # what it shows, a line each, for the head of the report

    def machines(self):
        lines = []
        for boot in self.boots:
            line = f"- `{boot.name}`: {boot.words()}"
            if line not in lines:
                lines.append(line)
        return "\n".join(lines)

    def markdown(self):
        parts = [f"## {self.title}\n", self.text.strip() + "\n", self.machines() + "\n"]
        for table in self.tables:
            parts += [f"**{table.caption}** (`{table.name}.csv`)\n", table.markdown()]
        parts += [f"![{name}]({name})\n" for name in self.plots]
        return "\n".join(parts)


INTRODUCTION = """# Experiments

Made by `make experiments{flag}`. Time is virtual: it counts instructions, 1 ns each or as stated, and a disk is memory
behind a delay: a request ends at max(now, disk free) + per request + bytes / bandwidth, and is delivered a latency
later. So every number here is the same in every run and on every machine; with more than one CPU, instructions of all
CPUs add up. Each run starts with an empty page cache.
"""


def write(folder, sections, quick):
    os.makedirs(folder, exist_ok=True)
    for section in sections:
        for table in section.tables:
            table.write_csv(folder)
        for name, text in section.plots.items():
            write_text(os.path.join(folder, name), text)
    text = INTRODUCTION.format(flag=" QUICK=1" if quick else "")
    text += "\n" + "".join(f"- {claim}\n" for section in sections for claim in section.claims)
    write_text(os.path.join(folder, "report.md"),
               "\n".join([text] + [section.markdown() for section in sections]))


def write_text(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
