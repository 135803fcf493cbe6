"""A case run again, and its receipts held against those that were recorded: the first difference, for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.asked import asked
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.journal import Ended, read_journals
from assisted_benchmark.suite.plan import MEMORY, RunPlan, run_keys
from assisted_benchmark.suite.result import VARIES
from assisted_benchmark.suite.storage import RunDirectory

# What follows from what else differs, or only from the place in the chain.
_DERIVED: Final = frozenset({"prev", "id"})


def played_again(case: Case, seed: int, servers: str | None = None) -> Ended:
    """The case once more, by itself, with its receipts."""
    bench = Bench(RunPlan(seed=seed, durability=MEMORY, servers=servers, expect_identical=True))
    try:
        return bench.run(case)
    finally:
        bench.close()


def ended_in(directory: Path, case_id: str) -> Ended:
    """How a case ended in a run.

    Raises:
        MisuseError: there is no such run, or the case is not in it.
    """
    files = RunDirectory(directory)
    seed = asked(files)["seed"]
    found = {each.result.id: each for each in read_journals(files, run_keys(seed))}
    if case_id not in found:
        hint = did_you_mean(case_id, found) or "`run.json` there has their names"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"`{shown(str(directory))}` has no case `{shown(case_id)}`; {hint}")
    return found[case_id]


def replayed(directory: Path, case: Case) -> tuple[Ended, Ended]:
    """How the case ended in that run, and how it ends now under the same seed and with the same servers.

    Raises:
        MisuseError: there is no such run, the case is not in it, or what it proposed then was not kept.
    """
    before = ended_in(directory, case.id)
    if VARIES in before.result.stamps:
        detail = f"what the agent of `{case.id}` proposed in `{shown(str(directory))}` was not kept"
        raise MisuseError(Reason.MISUSE, f"{detail}; `record` keeps it as a scenario, which can be replayed")
    run = asked(RunDirectory(directory))
    return before, played_again(case, run["seed"], run["servers"])


def first_difference(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[str, ...]:
    """Where two runs' receipts part, field by field; nothing if they are the same."""
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return (f"receipt {number} of {len(before)} is another:", *_fields(orjson.loads(old), orjson.loads(new)))
    if len(before) == len(after):
        return ()
    more, said = (before, "recorded, and does not come any more") if len(before) > len(after) else (after, "new")
    place = min(len(before), len(after))
    extra: dict[str, Any] = orjson.loads(more[place])
    keys = [key for key in ("kind", "reason", "server", "tool") if extra[key]]
    told = ", ".join(f"{key} `{shown(str(extra[key]), 80)}`" for key in keys)
    return (f"receipt {place + 1} is {said}: {told}",)


def _fields(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    telling = [key for key in keys if key not in _DERIVED] or keys
    return [f"  {key}: `{shown(str(old.get(key)))}` then, `{shown(str(new.get(key)))}` now" for key in telling]
