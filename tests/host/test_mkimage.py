"""tools/mkimage: images without root, holes kept, refusals before anything is written."""

import os
import subprocess

import pytest

from conftest import run_tool

GIB = 1 << 30
ENVIRONMENT = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "text").write_text("hello\n")
    (folder / "sub" / "random").write_bytes(os.urandom(300_000))
    (folder / "sub" / "link").symlink_to("random")
    for number in range(300):
        (folder / "sub" / "deep" / f"file-with-a-name-{number}").touch()
    return folder


def check(image):
    done = run_tool("e2fsck", "-f", "-n", image, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout


def content(image, path):
    return subprocess.run(["debugfs", "-R", f"cat {path}", str(image)], capture_output=True,
                          env=ENVIRONMENT, check=True).stdout


@pytest.mark.parametrize("block", [1024, 2048, 4096])
@pytest.mark.parametrize("inode", [128, 256])
def test_block_and_inode_sizes(tree, tmp_path, block, inode):
    image = tmp_path / "img"
    done = run_tool("tools/mkimage", tree, image, "-b", block, "-I", inode)
    assert done.returncode == 0, done.stderr
    check(image)
    head = run_tool("dumpe2fs", "-h", image, env=ENVIRONMENT).stdout
    assert f"Block size:               {block}\n" in head
    assert f"Inode size:\t          {inode}\n" in head
    assert content(image, "/sub/random") == (tree / "sub" / "random").read_bytes()


def test_holes_stay_holes(tree, tmp_path):
    image = tmp_path / "img"
    with open(tree / "sparse", "wb") as file:
        file.truncate(1000 * GIB)
        file.seek(1000 * GIB - 5000)
        file.write(b"x" * 5000)
    assert run_tool("tools/mkimage", tree, image).returncode == 0
    check(image)
    assert image.stat().st_size < 16 << 20
    assert "Size: 1073741824000" in run_tool("debugfs", "-R", "stat /sparse", image,
                                             env=ENVIRONMENT).stdout


def test_a_file_beyond_the_block_size_is_refused_before_anything_is_written(tree, tmp_path):
    image = tmp_path / "img"
    image.write_text("the old one")
    with open(tree / "sparse", "wb") as file:
        file.truncate(17 * GIB)
    done = run_tool("tools/mkimage", tree, image, "-b", 1024)
    assert done.returncode != 0 and "sparse" in done.stderr and "-b" in done.stderr
    assert image.read_text() == "the old one"
    assert run_tool("tools/mkimage", tree, image, "-b", 2048).returncode == 0


def test_the_same_folder_gives_the_same_image(tree, tmp_path):
    images = [tmp_path / "one", tmp_path / "two"]
    for image in images:
        assert run_tool("tools/mkimage", tree, image).returncode == 0
    assert images[0].read_bytes() == images[1].read_bytes()


def test_size_is_obeyed_and_too_small_leaves_nothing(tree, tmp_path):
    image = tmp_path / "img"
    assert run_tool("tools/mkimage", tree, image, "--size", 8).returncode == 0
    assert image.stat().st_size == 8 << 20
    (tree / "big").write_bytes(os.urandom(3 << 20))
    done = run_tool("tools/mkimage", tree, tmp_path / "small", "--size", 2)
    assert done.returncode != 0 and "MiB" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["img", "tree"]


@pytest.mark.parametrize("arguments", [["/nowhere", "img"], [], ["-b", "512", ".", "img"]])
def test_bad_arguments(arguments):
    assert run_tool("tools/mkimage", *arguments).returncode != 0
