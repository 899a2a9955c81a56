"""Runs the experiments.

    tools/experiments [--quick] [--only NAME,...] [--out FOLDER]
    tools/experiments --book [--out FOLDER]

Boots the kernel many times, two boots at a time, and writes FOLDER (build/experiments): report.md, a CSV file for each
table, and plots. Nothing in them depends on this machine or the hour: run twice, the files are the same.
With --book nothing is run: tables and plots of a whole run in FOLDER go into docs/.
Exit status: 0; 1 where a boot failed; 2 where the call was wrong.
"""

import argparse
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from experiments import book, loops, machine, matrix, readahead, report, streams, stride  # noqa: E402

EXPERIMENTS = {module.NAME: module for module in (streams, stride, loops, matrix, readahead)}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tools/experiments", allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few touches and few values: the shape, not the numbers")
    parser.add_argument("--only", metavar="NAME,...", help=f"some of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--out", metavar="FOLDER", default=os.path.join(machine.BUILD, "experiments"),
                        help="default build/experiments; what is in it is deleted")
    parser.add_argument("--book", action="store_true", help="take what is in FOLDER over into docs/")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(EXPERIMENTS)
    for name in names:
        if name not in EXPERIMENTS:
            parser.error(f"there is no experiment {name}; there are {', '.join(EXPERIMENTS)}")
    if args.book and not os.path.isfile(os.path.join(args.out, "report.md")):
        parser.error(f"there is no report in {args.out}; `make experiments` makes one")
    if os.path.exists(args.out) and not is_ours(args.out):
        parser.error(f"{args.out} is there and was not made by this tool")
    args.modules = [EXPERIMENTS[name] for name in EXPERIMENTS if name in names]
    return args


def is_ours(folder):
    return os.path.isdir(folder) and (not os.listdir(folder) or os.path.isfile(os.path.join(folder, "report.md")))


def main():
    args = parse_arguments()
    if args.book:
        book.copy_from(args.out)
        return 0
    plans = {module: module.boots(args.quick) for module in args.modules}
    boots = [boot for plan in plans.values() for boot in plan]
    try:
        results = machine.run_all(boots)
    except (machine.Failed, subprocess.TimeoutExpired) as error:
        print(f"tools/experiments: {error}", file=sys.stderr)
        return 1
    sections = [module.section(plan, {boot.name: results[boot.name] for boot in plan}, args.quick)
                for module, plan in plans.items()]
    shutil.rmtree(args.out, ignore_errors=True)
    report.write(args.out, sections, args.quick)
    print(f"{os.path.relpath(os.path.join(args.out, 'report.md'))}: {len(sections)} experiments")
    return 0


if __name__ == "__main__":
    sys.exit(main())
