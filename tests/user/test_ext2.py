"""ext2 images of mke2fs, read by the kernel: every block size and inode size gives the files that
the host has. The same program (tree) walks the folder here and there."""

import os
import random
import shutil
import subprocess
import sys

import pytest

import harness

MIB = 1 << 20
FEW_NAMES, LARGE_NAMES = 200, 5_000
TRIPLE_BYTES = 70 * MIB  # with 1 KiB blocks the triple-indirect tree begins at 65,804 KiB
BOOT_LIMIT_S = 120
TREE = os.path.join(harness.BUILD, "tests", "user", "tree")

# Bytes in a block and in an inode, and names in the folder "many".
SHAPES = [(1024, 128, LARGE_NAMES), (2048, 256, FEW_NAMES), (4096, 128, FEW_NAMES),
          (4096, 256, LARGE_NAMES)]


def write_pieces(path, size, pieces):
    """A file of holes with random bytes at some places."""
    generator = random.Random(size)
    with open(path, "wb") as file:
        file.truncate(size)
        for offset, length in pieces:
            file.seek(offset)
            file.write(generator.randbytes(length))


def make_folder(folder, block_bytes, names):
    pointers = block_bytes // 4
    single, double = 12, 12 + pointers
    triple = double + pointers * pointers
    os.makedirs(folder)
    for size in (0, 1, 1023, 1024, 4095, 4096, 4097, 13 * block_bytes + 5, 300_000):
        write_pieces(os.path.join(folder, f"size{size}"), size, [(0, size)])
    edges = [block * block_bytes + delta for block in (single, double) for delta in (-1, 0, 1)]
    write_pieces(os.path.join(folder, "edges"), (double + 3) * block_bytes,
                 [(edge, 1) for edge in edges])
    write_pieces(os.path.join(folder, "holes"), 40 * block_bytes + 17,
                 [(block * block_bytes, block_bytes // 2) for block in range(1, 40, 3)])
    write_pieces(os.path.join(folder, "tail-is-hole"), 50_000, [(100, 100)])
    if block_bytes == 1024:
        write_pieces(os.path.join(folder, "triple"), TRIPLE_BYTES,
                     [(0, 5000), (triple * block_bytes - 3, 6), (TRIPLE_BYTES - MIB, MIB)])
    many = os.path.join(folder, "many")
    os.makedirs(many)
    for number in range(names):
        name = f"{number:04}-" + "x" * (number % 50)
        with open(os.path.join(many, name), "w", encoding="ascii") as file:
            file.write(name if number % 10 == 0 else "")
    deep = os.path.join(folder, *[f"level{n}" for n in range(20)])
    os.makedirs(deep)
    write_pieces(os.path.join(deep, "n" * 255), 10, [(0, 10)])
    os.symlink("size1", os.path.join(folder, "link-short"))
    os.symlink("./" * 28 + "sizz", os.path.join(folder, "link-60"))
    os.symlink("./" * 27 + "size1", os.path.join(folder, "link-59"))
    os.symlink("many/../" * 40 + "size4096", os.path.join(folder, "link-long"))
    os.symlink("./" * 400 + "size4097", os.path.join(folder, "link-805"))
    os.symlink("nowhere", os.path.join(folder, "link-dangling"))
    os.symlink("level0", os.path.join(folder, "link-folder"))


def make_image(place, block_bytes, inode_bytes, names):
    root = os.path.join(place, "root")
    image = os.path.join(place, "image.img")
    make_folder(os.path.join(root, "t"), block_bytes, names)
    os.makedirs(os.path.join(root, "tests"))
    shutil.copy(TREE, os.path.join(root, "tests", "tree"))
    for name in ("dev", "proc", "sys"):
        os.makedirs(os.path.join(root, name))
    subprocess.run([sys.executable, os.path.join(harness.ROOT, "tools", "mkimage"), root, image,
                    "-b", str(block_bytes), "-I", str(inode_bytes)], check=True,
                   stdout=subprocess.DEVNULL)
    return os.path.join(root, "t"), image


@pytest.mark.parametrize("block_bytes,inode_bytes,names", SHAPES)
def test_the_kernel_sees_the_files_the_host_has(tmp_path, block_bytes, inode_bytes, names):
    folder, image = make_image(str(tmp_path), block_bytes, inode_bytes, names)
    expected = subprocess.run([TREE, folder], capture_output=True, check=False)
    result = harness.boot("/tests/tree", "/t", image=image, smp=2, timeout=BOOT_LIMIT_S)
    here = harness.text(expected.stdout).splitlines()
    there = result.out.splitlines()
    assert expected.returncode == 0 and len(here) > names, here[-5:]
    different = [pair for pair in zip(here, there) if pair[0] != pair[1]][:5]
    assert not different and len(there) == len(here), (different, len(here), len(there),
                                                      result.explain()[-2000:])
    assert result.status == 0, result.explain()[-2000:]
