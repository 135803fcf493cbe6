"""`scripts/fuzz TARGET`: bytes that nobody would send, at the edges where bytes come in; exit 1 if a law breaks."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzzing import corpus
from fuzzing.targets import MOST_BYTES, TARGETS


def main(words: list[str]) -> int:
    """Fuzz one target, or all of them in turn."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="+", metavar="TARGET", help=f"`all`, or of {', '.join(TARGETS)}")
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="so many inputs")
    parser.add_argument("--minutes", type=float, default=0, metavar="M", help="so long (default: 1)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="where chance begins")
    parser.add_argument("--plain", action="store_true", help="edits of the corpus alone, also where atheris is there")
    parser.add_argument("--keep", action="store_true", help="write what was found to reach more into the corpus")
    told = parser.parse_args(words)
    names = list(TARGETS) if told.targets == ["all"] else told.targets
    for name in names:
        if name not in TARGETS:
            parser.error(f"no target is called `{name}`; there are {', '.join(TARGETS)}")
    guided = not told.plain and importlib.util.find_spec("atheris") is not None
    fuzz = _guided if guided else _plain
    return max([fuzz(name, told) for name in names])


def _plain(name: str, told: argparse.Namespace) -> int:
    inputs = corpus.read(name)
    begun, done = time.monotonic(), 0
    seconds = (told.minutes or (0 if told.runs else 1)) * 60
    for data in itertools.chain(inputs, corpus.edited(inputs, told.seed, MOST_BYTES)):
        if (told.runs and done >= told.runs) or (seconds and time.monotonic() - begun >= seconds):
            break
        done += 1
        try:
            TARGETS[name](data)
        except Exception as error:  # noqa: BLE001 - whatever a target raises is what is looked for
            print(f"{name}: {type(error).__name__}: {error}\n  of the bytes {data!r}")
            return 1
    print(f"{name}: {done} inputs, edits of {len(inputs)}, no finding")
    return 0


def _guided(name: str, told: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        begun, grown, merged = (Path(place) / each for each in ("corpus", "grown", "merged"))
        for each in (begun, grown, merged):
            each.mkdir()
        for number, data in enumerate(corpus.read(name)):
            (begun / str(number)).write_bytes(data)
        bounds = [f"-seed={told.seed}", f"-max_len={MOST_BYTES if name == 'receipts' else 1 << 12}", "-timeout=20"]
        if told.runs:
            bounds.append(f"-runs={told.runs}")
        if told.minutes or not told.runs:
            bounds.append(f"-max_total_time={int((told.minutes or 1) * 60)}")
        found = _atheris(
            name, [*bounds, "-print_final_stats=1", f"-artifact_prefix={place}/bad-", str(grown), str(begun)]
        )
        done = re.search(r"number_of_executed_units: (\d+)", found)
        bad = sorted(Path(place).glob("bad-*"))
        for each in bad:
            print(f"{name}: a finding of the bytes {each.read_bytes()!r}\n{_tail(found)}")
        if not bad and done is None:
            print(f"{name}: atheris ended without a word of what it did\n{_tail(found)}")
            return 1
        reached = re.findall(r"cov: (\d+) ft: (\d+)", found)
        print(f"{name}: {done[1] if done else '?'} inputs, cov {reached[-1] if reached else '?'}, {len(bad)} findings")
        if told.keep and not bad:
            _atheris(name, ["-merge=1", str(merged), str(begun), str(grown)])
            small = sorted((each.read_bytes() for each in merged.iterdir()), key=len)
            corpus.write(name, [*corpus.read(name), *[each for each in small if len(each) <= 600][:120]])
        return 1 if bad else 0


def _atheris(name: str, options: list[str]) -> str:
    ran = subprocess.run([sys.executable, "-m", "fuzzing.guided", name, *options], capture_output=True, check=False)
    return (ran.stdout + ran.stderr).decode(errors="replace")


def _tail(said: str) -> str:
    return "\n".join(said.splitlines()[-30:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
