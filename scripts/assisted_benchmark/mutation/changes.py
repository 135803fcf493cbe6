"""What an API's changes are: the model of a change contract, pinned by its digest. Pure data, no product's names.

A contract has change types, each one create request, and a small catalogue of reads beside
them. What a change type is: its fields (a closed schema), the request that they become, what
the endpoint's answers mean, and what it costs or why that cannot be said.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from attrs import field, frozen

from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.digest import Digest, digest_of

MUTATE: Final = "mutate"
ANY_SUCCESS: Final = "2xx"


@frozen(kw_only=True)
class PriceRule:
    """How a price is asked for, and where it stands in the answer (JSON pointers, each within the one before).

    `rows` is a list that must have one item; in it are the `currency` and the list of `charges`, each with its
    `kind` and its `amount`. `monthly` and `non_recurring` are the kinds that count.
    """

    path: str
    accepts: frozenset[int]
    body: Canonical
    rows: str
    currency: str
    charges: str
    kind: str
    amount: str
    monthly: str
    non_recurring: str


@frozen(kw_only=True)
class ErrorShape:
    """How the endpoint tells of an error: a list of objects; the keys of a code, a sentence, an id, and places."""

    code: str
    message: str
    id: str = ""
    places: str = ""


@frozen(kw_only=True, slots=False)
class ChangeType:
    """One kind of create. `price` is None where no price can be asked for; `unpriced` then says why."""

    name: str
    title: str
    path: str
    dry_run_accepts: frozenset[int]
    create_accepts: frozenset[int]
    fields: Canonical
    body: Canonical
    prompt: tuple[str, ...]
    price: PriceRule | None
    unpriced: str
    sensitive: tuple[str, ...]
    example: Canonical

    @cached_property
    def checker(self) -> Checker:
        """The fields' schema, compiled."""
        return Checker(self.fields.value)

    @cached_property
    def template(self) -> Json:
        """The body's template as a value; nobody changes it."""
        return self.body.value


@frozen(kw_only=True, slots=False)
class Read:
    """One request that changes nothing: a GET, or a POST that searches. `path` may hold `{field}` of its arguments."""

    name: str
    title: str
    toolset: str
    method: str
    path: str
    fields: Canonical
    body: Canonical | None
    example: Canonical

    @cached_property
    def checker(self) -> Checker:
        """The arguments' schema, compiled."""
        return Checker(self.fields.value)


@frozen(kw_only=True, slots=False)
class ChangeContract:
    """One API's changes and reads. `source` is the file's whole value: the digest covers all of it.

    `endpoint` is what a person is told the target is; `dry_run` the query that asks for a dry run.
    """

    id: str
    endpoint: str
    dry_run: str
    errors: ErrorShape
    changes: tuple[ChangeType, ...]
    reads: tuple[Read, ...]
    source: Canonical = field(repr=False)

    @cached_property
    def digest(self) -> Digest:
        """Covers every key of the file."""
        return digest_of("changes@1", self.source.data)

    @cached_property
    def _by_name(self) -> dict[str, ChangeType]:
        return {each.name: each for each in self.changes}

    def change(self, name: str) -> ChangeType | None:
        """The change type of that name, or None."""
        return self._by_name.get(name)

    def read(self, name: str) -> Read | None:
        """The read of that name, or None."""
        return next((each for each in self.reads if each.name == name), None)


def accepted(value: Json) -> frozenset[int]:
    """The statuses that `[200, 201]` or `2xx` stands for."""
    return frozenset(range(200, 300)) if value == ANY_SUCCESS else frozenset(value)
