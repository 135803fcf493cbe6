"""Where the run's task goes into a policy's arguments: at every `{from: run.task}`. Text is never a template. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.pointers import pointer

Where: TypeAlias = tuple[str | int, ...]

_TASK: Final = {"from": "run.task"}


def with_task(value: Json, task: str) -> Json:
    """A fresh value with the task at every `{from: run.task}`."""
    if type(value) is dict:
        return task if value == _TASK else {key: with_task(each, task) for key, each in value.items()}
    if type(value) is list:
        return [with_task(each, task) for each in value]
    return value


def references(value: Json, at: Where = ()) -> Iterator[Where]:
    """Where within there is an object whose one key is `from`."""
    if type(value) is dict and set(value) == {"from"}:
        yield at
    elif type(value) is dict or type(value) is list:
        for step, each in value.items() if type(value) is dict else enumerate(value):
            yield from references(each, (*at, step))


def task_places(value: Json) -> frozenset[str]:
    """JSON pointers of the objects that `references` finds, and of all that holds one."""
    found = set()
    for where in references(value):
        path = ""
        found.add(path)
        for step in where:
            path = pointer(path, step)
            found.add(path)
    return frozenset(found)
