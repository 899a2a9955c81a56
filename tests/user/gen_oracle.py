#!/usr/bin/env python3
"""Adds what the tests of tests/user need to the folder that becomes an image.

    gen_oracle.py FOLDER

    /tests/oracle.txt       the script for /tests/oracle: every scenario of tests/data/readahead.txt
    /tests/sequences.txt    the same for the worked sequences of tests/user/sequences.py
    /tests/streams.txt      every order of tools/patterns.py under ondemand and under stream
    /tests/patterns.txt     the same table for tools/experiments: NAME ADVICE MAP_AROUND FILE WORDS
    /data/stride100.trace   what `seq 0 100 1000000` prints
    /data/hole.bin          100 pages, of which 0-9 and 40-49 hold data
    /data/odd.bin           20 pages, the last one not whole
    /data/tiny.bin          one page, not whole
"""

import os
import random
import sys

import readahead_oracle
import sequences

sys.path.insert(0, os.path.join(readahead_oracle.HERE, "..", "..", "tools"))
import patterns  # noqa: E402, behind its path

PAGE_BYTES = readahead_oracle.PAGE_BYTES
HOLE_FILE_PAGES = 100
ODD_FILE_BYTES = 19 * PAGE_BYTES + 1234
TINY_FILE_BYTES = 100
# The images leave out files of the other one; a scenario without its file is left out too.
OPTIONAL_FILES = ("/data/medium.bin", "/data/sparse.bin")


def write(root, path, data):
    name = root + path
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if os.path.lexists(name):
        os.unlink(name)
    with open(name, "wb") as file:
        file.write(data)
    return name


def write_hole_file(root):
    name = write(root, "/data/hole.bin", b"")
    generator = random.Random(2010)
    with open(name, "r+b") as file:
        file.truncate(HOLE_FILE_PAGES * PAGE_BYTES)
        for page in readahead_oracle.HOLE_DATA_PAGES:
            file.seek(page * PAGE_BYTES)
            file.write(generator.randbytes(PAGE_BYTES))


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: gen_oracle.py FOLDER")
    root = sys.argv[1].rstrip("/")
    generator = random.Random(2011)
    write_hole_file(root)
    write(root, "/data/odd.bin", generator.randbytes(ODD_FILE_BYTES))
    write(root, "/data/tiny.bin", generator.randbytes(TINY_FILE_BYTES))
    write(root, "/data/stride100.trace",
          "".join(f"{page}\n" for page in range(0, 1_000_001, 100)).encode())
    missing = [path for path in OPTIONAL_FILES if not os.path.exists(root + path)]
    lines = [s.script_line for s in readahead_oracle.scenarios() if s.file not in missing]
    write(root, "/tests/oracle.txt", "".join(f"{line}\n" for line in lines).encode())
    if "/data/medium.bin" not in missing:
        write(root, "/tests/sequences.txt",
              "".join(f"{line}\n" for line in sequences.script_lines()).encode())
        lines = patterns.script_lines(patterns.all_runs(missing), ("ondemand", "stream"))
        write(root, "/tests/patterns.txt",
              "".join(f"{one.name} {one.advice} {one.map_around} {one.file} {one.words}\n"
                      for one in patterns.PATTERNS).encode())
        write(root, "/tests/streams.txt", "".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    main()
