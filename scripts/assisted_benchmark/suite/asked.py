"""`run.json`: what a run was asked to run, and what going on with it and joining shards hold it against."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import InputError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.suite.case import Case, Servers
from assisted_benchmark.suite.plan import MEMORY, RunPlan
from assisted_benchmark.suite.storage import RunDirectory, write_whole

SCHEMA: Final = "assisted-benchmark/run@3"
# What of a plan decides what cases come to; a run is gone on with, and joined, only where these are the same.
_DECIDING: Final = ("seed", "durability", "servers", "repeat")


def asked(files: RunDirectory) -> dict[str, Any]:
    """What a run was asked to run.

    Raises:
        MisuseError: there is none, or one of another version, or one that was edited into nonsense.
    """
    place = shown(str(files.path))
    if not os.path.lexists(files.plan):
        raise MisuseError(Reason.UNREADABLE, f"`{place}` holds no run; `run` makes one below runs/")
    try:
        value = orjson.loads(files.read(files.plan))
    except InputError as error:
        raise MisuseError(Reason.UNREADABLE, f"`{place}` holds no run: {error.detail}, at run.json") from error
    except ValueError as error:
        raise MisuseError(Reason.UNREADABLE, f"`{place}` holds no run: its run.json is no JSON") from error
    if type(value) is dict and value.get("schema", SCHEMA) != SCHEMA:
        raise MisuseError(Reason.UNREADABLE, f"`{place}` holds a run of another version")
    for key in _unlike(value, _SHAPE):
        detail = f"`{place}` holds no run that can be gone on with"
        raise MisuseError(Reason.UNREADABLE, f"{detail}: `{key}` is missing in its run.json, or is no such value")
    found: dict[str, Any] = value
    if found["shard"] and len(found["shard"]["places"]) != len(found["cases"]):
        raise MisuseError(Reason.UNREADABLE, f"`{place}` holds no run: its run.json has cases without a place")
    return found


def _unlike(value: object, shape: Mapping[str, Callable[[Any], bool]]) -> Iterator[str]:
    """The keys that are missing or whose values are of another shape."""
    for key, fits in shape.items():
        if type(value) is not dict or key not in value or not fits(value[key]):
            yield key


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_part(value: object) -> bool:
    return value is None or not any(_unlike(value, _PART))


_SHAPE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "schema": _is_text,
    "seed": _is_count,
    "durability": lambda value: value in (MEMORY, *Durability),
    "servers": lambda value: value is None or value in tuple(Servers),
    "repeat": lambda value: _is_count(value) and value > 0,
    "shard": _is_part,
    "sources": _is_text,
    "cases": lambda value: type(value) is list and all(_is_text(each) for each in value),
}
_PART: Final[Mapping[str, Callable[[Any], bool]]] = {
    "number": _is_count,
    "of": _is_count,
    "cases": _is_count,
    "sources": _is_text,
    "places": lambda value: type(value) is list and all(_is_count(each) for each in value),
}


def write_asked(files: RunDirectory, value: dict[str, Any]) -> None:
    """Write down what a run is asked to run, before its first case."""
    write_whole(files.plan, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")


def shard(cases: Iterable[Case], number: int, of: int) -> tuple[Case, ...]:
    """The part `number` (from 1) of `of` parts. Which part a case is in depends on its id alone.

    Raises:
        MisuseError: there is no such part.
    """
    if not 1 <= number <= of:
        raise MisuseError(Reason.MISUSE, f"there is no part {number} of {of}; parts are counted from 1")
    return tuple(case for case in cases if int(digest_of("shard@1", case.id.encode())[7:], 16) % of == number - 1)


def newly_asked(whole: Sequence[Case], part: Sequence[Case], plan: RunPlan) -> dict[str, Any]:
    """What is written of a run that begins: `part` is what it runs of the `whole` selection."""
    value = {
        "schema": SCHEMA,
        **{key: getattr(plan, key) for key in _DECIDING},
        "shard": None,
        "sources": _sources(part),
        "cases": [case.id for case in part],
    }
    if plan.shard is not None:
        places = {case.id: place for place, case in enumerate(whole)}
        value["shard"] = {
            "number": plan.shard[0],
            "of": plan.shard[1],
            "cases": len(whole),
            "sources": _sources(whole),
            "places": [places[case.id] for case in part],
        }
    return value


def plan_for(directory: Path, **given: Any) -> RunPlan:
    """The plan of a run in `directory`. `given` are fields of RunPlan; what is None is as the run there began, if any.

    Raises:
        MisuseError: what is there is no run of this version.
    """
    files = RunDirectory(directory)
    began = asked(files) if files.plan.exists() else {}
    fields: dict[str, Any] = {key: began[key] for key in _DECIDING if key in began}
    if began.get("shard"):
        fields["shard"] = _part(began)
    said = {key: value for key, value in given.items() if value is not None}
    return RunPlan(**{**fields, **said, "directory": directory})


def gone_on(cases: Sequence[Case], plan: RunPlan, files: RunDirectory) -> tuple[Case, ...]:
    """Those of the cases that the run in `files` was asked to run, in its order.

    Raises:
        MisuseError: another plan, or cases that are missing or were made from other files.
    """
    began = asked(files)
    by_id = {case.id: case for case in cases}
    chosen = tuple(by_id[name] for name in began["cases"] if name in by_id)
    differing = [f"{key} {_word(began[key])}, not {_word(getattr(plan, key))}" for key in _DECIDING]
    differing = [each for each, key in zip(differing, _DECIDING, strict=True) if began[key] != getattr(plan, key)]
    if plan.shard is not None and plan.shard != _part(began):
        differing.append(f"shard {_shard_word(_part(began))}, not {_shard_word(plan.shard)}")
    if differing:
        hint = "leave that out to go on with it, or take a new directory"
        raise MisuseError(Reason.MISUSE, f"`{files.path}` was begun with {'; '.join(differing)}; {hint}")
    if len(chosen) != len(began["cases"]):
        lacking = next(name for name in began["cases"] if name not in by_id)
        hint = "select at least what it was to run, or take a new directory"
        raise MisuseError(Reason.MISUSE, f"`{files.path}` was to run `{lacking}` too, which is not selected; {hint}")
    if _sources(chosen) != began["sources"]:
        detail = "a fixture, policy or contract of its cases was changed since it began; take a new directory"
        raise MisuseError(Reason.MISUSE, f"`{files.path}` cannot be gone on with: {detail}")
    return chosen


def joined(directories: Sequence[Path]) -> dict[str, Any]:
    """What the whole run was asked to run, of which these are the shards: as one run would have written it.

    Raises:
        MisuseError: they are not the shards of one run, one is there twice, or one is missing.
    """
    runs = [asked(RunDirectory(each)) for each in directories]
    fault = next(_unfit(directories, runs), "")
    if fault:
        raise MisuseError(Reason.MISUSE, fault)
    first, whole = runs[0], runs[0]["shard"]
    names = {place: name for each in runs for place, name in zip(each["shard"]["places"], each["cases"], strict=True)}
    if len(names) != whole["cases"]:
        numbers = {each["shard"]["number"] for each in runs}
        lacking = [f"{number}/{whole['of']}" for number in range(1, whole["of"] + 1) if number not in numbers]
        detail = f"not all parts are there: {', '.join(lacking)}; run `--shard {lacking[0]}` too, and join all of them"
        raise MisuseError(Reason.MISUSE, detail)
    return {**first, "shard": None, "sources": whole["sources"], "cases": [names[place] for place in sorted(names)]}


def _unfit(directories: Sequence[Path], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Why these are not shards of one run; what comes after the first is not asked for."""
    if not runs:
        yield "there is nothing to join; name the directories of all shards"
    seen: dict[int, Path] = {}
    for directory, run in zip(directories, runs, strict=True):
        part: Any = run.get("shard")
        if not part:
            yield f"`{directory}` is no shard; `run --shard N/M` makes one"
        for key in _DECIDING:
            if run[key] != runs[0][key]:
                words = f"{_word(runs[0][key])} and {_word(run[key])}"
                yield f"`{directories[0]}` and `{directory}` are not shards of one run: {key} {words}"
        for key, what in (("of", "another number of parts"), ("sources", "another selection, or other files")):
            if part[key] != runs[0]["shard"][key]:
                yield f"`{directories[0]}` and `{directory}` are not shards of one run: {what}"
        if part["number"] in seen:
            twins = f"`{seen[part['number']]}` and `{directory}`"
            yield f"{twins} are the same part, {_shard_word(_part(run))}; give each part once"
        seen[part["number"]] = directory


def _part(run: dict[str, Any]) -> tuple[int, int] | None:
    part = run.get("shard")
    return (part["number"], part["of"]) if part else None


def _shard_word(part: tuple[int, int] | None) -> str:
    return "none" if part is None else f"{part[0]}/{part[1]}"


def _word(value: object) -> str:
    return "as each scenario says" if value is None else str(value)


def _sources(cases: Sequence[Case]) -> Digest:
    # Part by part: as one JSON value many cases would be more than the canonical form takes.
    return digest_of("cases@2", *(part.encode() for case in cases for part in (case.id, case.source)))
