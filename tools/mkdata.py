"""Makes one of the files that the images carry in /data.

    mkdata.py NAME FILE

The random bytes come from seeded generators: the same on every machine.
"""

import os
import random
import sys

PAGE_BYTES = 4096
CHUNK_BYTES = 1 << 20
MIB = 1 << 20
GIB = 1 << 30

SMALL_TEXT = """This is a small text file on the Faultline image.
A page of it that is touched arrives by a fault: through the VMA, the page cache and the disk.
"""


def write_random(file, total_bytes, seed):
    """Writes what Random(seed).randbytes(total_bytes) gives, chunk by chunk (each of whole words)."""
    generator = random.Random(seed)
    left = total_bytes
    while left > 0:
        chunk = min(left, CHUNK_BYTES)
        file.write(generator.randbytes(chunk))
        left -= chunk


def write_sparse(file):
    """1000 GiB of hole, with 1 MiB of random bytes at its end (zeros would become a hole again)."""
    file.truncate(1000 * GIB)
    file.seek(1000 * GIB - MIB)
    write_random(file, MIB, 2008)


MAKERS = {
    "random.bin": lambda file: write_random(file, 100_000 * PAGE_BYTES, 2007),
    "medium.bin": lambda file: write_random(file, 16_384 * PAGE_BYTES, 2009),
    "sparse.bin": write_sparse,
    "small.txt": lambda file: file.write(SMALL_TEXT.encode()),
}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in MAKERS:
        sys.exit(f"usage: mkdata.py {'|'.join(MAKERS)} FILE")
    name, path = sys.argv[1:]
    partial = f"{path}.{os.getpid()}.part"
    try:
        with open(partial, "wb") as file:
            MAKERS[name](file)
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


if __name__ == "__main__":
    main()
