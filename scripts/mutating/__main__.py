"""`scripts/mutants [ROOM...]`: the package with one small fault at a time; exit 1 if one goes unnoticed unexplained."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from mutating import tree
from mutating.choosing import Chooser
from mutating.known import read_known, stale
from mutating.operators import Mutant, mutants_of
from mutating.reach import Reach

ROOMS = ("kernel", "live_policy", "ledger", "mutation", "capability", "mcp_router")
FOLDERS = (*ROOMS, "wire", "contract", "properties", "golden")
KNOWN = "scripts/mutating/survivors.yaml"


def main(words: list[str]) -> int:
    """Make the faults, run the tests, tell the figures."""
    told = _parser().parse_args(words)
    rooms = tuple(told.rooms) or ROOMS
    work = Path(told.work).resolve()
    copy = work / "tree"
    copy.mkdir(parents=True, exist_ok=True)
    if not told.as_copied:
        tree.copy_checkout(told.root, copy)
    sources = tree.sources(copy, rooms)
    mutants = [each for file, source in sources.items() for each in mutants_of(file, source) if told.only in each.name]
    chosen = random.Random(told.seed).sample(mutants, min(told.sample, len(mutants))) if told.sample else mutants  # noqa: S311 - which to look at
    folders = tuple(told.tests) or FOLDERS
    reach = _reach(work, folders, told.jobs)
    chooser = Chooser(reach, tree.sources(copy, ROOMS))
    verdicts = _judged(work, chosen, chooser, folders, told)
    return _tell(told, rooms, mutants, chosen, verdicts, read_known(told.root / KNOWN))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"only these of {', '.join(ROOMS)}")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="a quick look at N of the faults")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which N")
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults with this in their name")
    parser.add_argument(
        "--again", action="store_true", help="trust what was noticed before, where code and test are the same"
    )
    parser.add_argument(
        "--as-copied", action="store_true", help="work on the copy of the last time, not on the checkout of now"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="faults at a time")
    parser.add_argument(
        "--tests", action="append", default=[], metavar="FOLDER", help="only the tests of these folders"
    )
    parser.add_argument("--list", action="store_true", help="print every fault that goes unnoticed unexplained")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2], help="the checkout")
    parser.add_argument("--work", default=_cache(), help="where the copies are (default: %(default)s)")
    return parser


def _cache() -> str:
    return os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "assisted-benchmark-mutants"
    )


def _stage(work: Path, stage: str, number: str, told: dict[str, Any]) -> subprocess.Popen[bytes]:
    (work / f"{stage}{number}.json").write_text(json.dumps(told), encoding="utf-8")
    scripts = work / "tree" / "scripts"
    engine = Path(__file__).parents[1]
    environment = {
        **os.environ, "PYTHONPATH": f"{scripts}{os.pathsep}{engine}", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1",
        "ASSISTED_BENCHMARK_ROOT": str(work / "tree"),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "mutating.serving", stage, str(work), number],
        cwd=work / "tree", env=environment, stdin=subprocess.DEVNULL, stdout=(work / f"{stage}{number}.log").open("wb"),
        stderr=subprocess.STDOUT,
    )  # fmt: skip


def _reach(work: Path, folders: tuple[str, ...], jobs: int) -> Reach:
    files = tree.test_files(work / "tree", folders)
    stamps = tree.test_stamps(work / "tree", files)
    place = work / "reach"
    place.mkdir(exist_ok=True)
    records = {
        name: place / f"{hashlib.sha256((name + stamp).encode()).hexdigest()[:32]}.json"
        for name, stamp in stamps.items()
    }
    missing = [name for name in files if not records[name].exists()]
    if missing:
        detail = "once; it is kept, and takes some minutes for all of them"
        print(f"recording which lines {len(missing)} files of tests reach ({detail})", file=sys.stderr, flush=True)
    shares = [missing[number::jobs] for number in range(jobs)]
    stages = [
        _stage(
            work,
            "reach",
            str(number),
            {"files": share, "rooms": ROOMS, "records": {name: str(records[name]) for name in share}},
        )
        for number, share in enumerate(shares)
        if share
    ]
    for each in stages:
        each.wait()
    if not all(path.exists() for path in records.values()):
        raise SystemExit(f"the tests could not be run: see {work}/reach*.log")
    return Reach.read([path for path in records.values() if path.exists()])


def _judged(
    work: Path, mutants: list[Mutant], chooser: Chooser, folders: tuple[str, ...], told: argparse.Namespace
) -> dict[str, str]:
    """What became of each fault; faults that were noticed before are not made again where that is asked for."""
    said = work / "verdicts.jsonl"
    before = _before(said, work / "tree") if told.again else {}
    said.unlink(missing_ok=True)
    if before:
        _write(said, list(before.values()))
    orders: dict[str, list[dict[str, Any]]] = {"hot": [], "cold": []}
    for mutant in mutants:
        if mutant.name not in before:
            stage, order = chooser.order(mutant)
            orders[stage].append(order)
    _run(work, "hot", orders["hot"], folders, told.jobs)
    verdicts = _read(said)
    unmade = [each for each in mutants if chooser.cold_too(each, verdicts.get(each.name, {}).get("verdict", ""))]
    _run(work, "cold", [*orders["cold"], *map(chooser.cold_again, unmade)], folders, told.jobs)
    verdicts = _read(said)
    _write(said, [_stamped(each, work / "tree") for each in verdicts.values()])
    return {each.name: verdicts.get(each.name, {}).get("verdict", "survived") for each in mutants}


def _run(work: Path, stage: str, orders: list[dict[str, Any]], folders: tuple[str, ...], jobs: int) -> None:
    if orders:
        print(f"making {len(orders)} faults, each shown to the tests that reach it", file=sys.stderr, flush=True)
        _write(work / f"{stage}.jsonl", orders)
        told = {"files": tree.test_files(work / "tree", folders), "jobs": jobs}
        if _stage(work, stage, "", told).wait():
            raise SystemExit(f"the server of faults ended: see {work / (stage + '.log')}")


def _write(path: Path, values: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in values), encoding="utf-8")


def _read(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {each["name"]: each for each in map(json.loads, lines)}


def _stamped(verdict: dict[str, Any], copy: Path) -> dict[str, Any]:
    file = copy / tree.PACKAGE / verdict["name"].partition("::")[0]
    test = copy / verdict["by"].partition("::")[0]
    return verdict | {"stamp": tree.digest(file, test) if verdict["by"] and test.is_file() else ""}


def _before(said: Path, copy: Path) -> dict[str, dict[str, Any]]:
    return {
        name: each
        for name, each in _read(said).items()
        if each["verdict"] in ("killed", "timeout")
        and each.get("stamp")
        and (copy / tree.PACKAGE / name.partition("::")[0]).exists()
        and _stamped(each, copy)["stamp"] == each["stamp"]
    }


def _tell(
    told: argparse.Namespace,
    rooms: tuple[str, ...],
    mutants: list[Mutant],
    chosen: list[Mutant],
    verdicts: dict[str, str],
    known: dict[str, str],
) -> int:
    print(f"{'room':<12} {'faults':>7} {'killed':>7} {'timeout':>8} {'explained':>10} {'unexplained':>12} {'score':>7}")
    total = [0, 0, 0, 0, 0]
    left: list[str] = []
    for room in rooms:
        here = [each.name for each in chosen if each.name.startswith(room + "/")]
        noticed = [name for name in here if verdicts[name] == "killed"]
        late = [name for name in here if verdicts[name] == "timeout"]
        alive = [name for name in here if verdicts[name] not in ("killed", "timeout")]
        unexplained = [name for name in alive if name not in known]
        left += unexplained
        row = [len(here), len(noticed), len(late), len(alive) - len(unexplained), len(unexplained)]
        total = [a + b for a, b in zip(total, row, strict=True)]
        print(_row(room, row))
    if len(rooms) > 1:
        print(_row("all", total))
    if told.sample:
        low, high = _wilson(total[1] + total[2], total[0])
        print(f"{total[0]} of {len(mutants)} faults (seed {told.seed}); 95 % interval {low:.1%} to {high:.1%}")
    if told.list and left:
        print(*left, sep="\n")
    killed = {name for name, verdict in verdicts.items() if verdict in ("killed", "timeout")}
    whole = not (told.sample or told.only)
    wrong = stale(known, {each.name for each in mutants}, killed, rooms) if whole else []
    for line in wrong:
        print(f"stale in {KNOWN}: {line}")
    if left or wrong:
        print(f"{len(left)} faults go unnoticed unexplained: kill each with a test, or say in {KNOWN} why none can")
    return 1 if left or wrong else 0


def _row(name: str, row: list[int]) -> str:
    score = (row[1] + row[2]) / row[0] if row[0] else 1.0
    return f"{name:<12} {row[0]:>7} {row[1]:>7} {row[2]:>8} {row[3]:>10} {row[4]:>12} {score:>7.1%}"


def _wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share that was seen in a sample."""
    if not of:
        return 0.0, 1.0
    z = 1.959964
    share = hits / of
    middle = share + z * z / (2 * of)
    spread = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - spread) / (1 + z * z / of), (middle + spread) / (1 + z * z / of)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
