"""`replay`: a recorded case once more; its receipts must be the same, and where they are not, the first difference."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.report.summary import fault_lines
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.journal import Ended
from assisted_benchmark.suite.live.recording import receipts_of
from assisted_benchmark.suite.live.scenario import RECORDING_SEED, LiveCase
from assisted_benchmark.suite.replay import first_difference, played_again, replayed
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover

C = TypeVar("C", bound=Case)


def command(arguments: argparse.Namespace) -> int:
    """Replay a scenario that says its receipts, or a case of a run."""
    root = root_of(arguments)
    what: Path = arguments.what
    if what.is_dir():
        if arguments.case is None:
            raise MisuseError(Reason.MISUSE, f"`{shown(str(what))}` is a run: say which case of it to replay")
        case = _case(discover(root, real=True), arguments.case)
        before, now = replayed(what, case)
        return _told(case, before.result.receipts, before.receipts, now, as_json=arguments.json)
    return compared(root, what, arguments.case, as_json=arguments.json)


def compared(root: Path, path: Path, name: str | None = None, *, as_json: bool = False) -> int:
    """Replay a scenario's file, of several cases the one that is named; the exit code."""
    cases = [each for each in discover(root, [path]) if isinstance(each, LiveCase) and each.expect.receipts is not None]
    if not cases:
        detail = f"`{shown(str(path))}` says no receipts that could be held"
        raise MisuseError(Reason.MISUSE, f"{detail}; `record` writes such scenarios, under `expect: {{receipts: …}}`")
    if name is None and len(cases) > 1:
        some = ", ".join(f"`{each.id}`" for each in cases[:3])
        detail = f"`{shown(str(path))}` has {len(cases)} recorded cases"
        raise MisuseError(Reason.MISUSE, f"{detail}; name one, such as {some}")
    case = cases[0] if name is None else _case(cases, name)
    now = played_again(case, RECORDING_SEED)
    return _told(case, case.expect.receipts, receipts_of(path, root), now, as_json=as_json)


def _case(cases: Sequence[C], name: str) -> C:
    found = {each.id: each for each in cases}
    if name not in found:
        hint = did_you_mean(name, found) or "`list` shows the cases, and a run has those of its `report.json`"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"there is no case `{shown(name)}`; {hint}")
    return found[name]


def _told(case: Case, recorded: Digest | None, receipts: tuple[bytes, ...], now: Ended, *, as_json: bool) -> int:
    result = now.result
    same = recorded == result.receipts
    lines = () if same else first_difference(receipts, now.receipts) if receipts else ()
    if as_json:
        told = {"case": case.id, "identical": same, "recorded": recorded, "now": result.receipts}
        told |= {"verdict": result.verdict.value, "difference": list(lines)}
        print(json.dumps(told, indent=1))
    elif same:
        print(f"identical: {case.id}, {len(now.receipts)} receipts, {recorded}")
    else:
        print(f"assisted-benchmark: the receipts of `{case.id}` are not those that were recorded", file=sys.stderr)
        print(f"  recorded {recorded}, now {result.receipts or 'none'}", file=sys.stderr)
        for line in lines or fault_lines(result):
            print(f"  {shown(line, 2000)}", file=sys.stderr)
        print("  look at what changed since (policy, contract, servers), or record it anew", file=sys.stderr)
    if result.verdict is Verdict.COULD_NOT_RUN:
        return exits.COULD_NOT_RUN
    if not same:
        return exits.INTEGRITY
    if result.verdict is Verdict.FAILED and not as_json:
        print(*fault_lines(result), sep="\n", file=sys.stderr)
    return exits.OK if result.verdict is Verdict.PASSED else exits.FAILED
