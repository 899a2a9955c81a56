"""Prints compile_commands.json, by which editors know how each file is compiled.

    compile_commands.py "COMPILER FLAGS" FILE... [-- "COMPILER FLAGS" FILE...]...
"""

import json
import os
import sys


def groups(arguments):
    """The arguments between the `--`."""
    group = []
    for argument in arguments + ["--"]:
        if argument != "--":
            group.append(argument)
        elif group:
            yield group
            group = []


def main():
    folder = os.getcwd()
    entries = [
        {"directory": folder, "file": file, "command": f"{command} -c {file}"}
        for command, *files in groups(sys.argv[1:])
        for file in files
    ]
    json.dump(entries, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
