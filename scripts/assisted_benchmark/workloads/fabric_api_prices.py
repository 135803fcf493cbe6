"""The offline Fabric endpoint's rate card, and the search in it. The prices are made up; the shapes are public."""

from __future__ import annotations

import re
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.workloads.fabric_api_shapes import Problem

# Monthly, by bandwidth in Mbps: what is not on the card has no price.
_MONTHLY: Final = {50: 50, 100: 100, 200: 200, 500: 350, 1000: 500, 2000: 800, 5000: 1100, 10000: 1500}
# What a type of connection adds each month, and once. The other types are not on the card.
_TYPES: Final = {"EVPL_VC": (0, 0), "EVPLAN_VC": (25, 0), "IP_VC": (75, 0), "EPL_VC": (400, 250)}
_PROPERTY: Final = re.compile(
    r"/type|/connection/(type|bandwidth|[az]Side/accessPoint/(type|location/metroCode|(port|profile|network)/uuid"
    r"|port/settings/buyout|network/scope|router/package/code))"
)
_MOST: Final = 20  # values of one criterion


def search(body: Json) -> list[Json] | list[Problem]:
    """The rows that a `filter` of `and` criteria selects; or what is wrong with it, if anything is."""
    wrong: list[Problem] = []
    match body:
        case {"filter": {"and": [*criteria], **extra}, **more} if criteria and not extra and not more:
            chosen = _chosen(criteria, wrong)
        case _:
            return [Problem("/filter", "must be {and: [{property, operator, values}]} with one criterion or more")]
    if wrong:
        return wrong
    if chosen.get("/type") != ["VIRTUAL_CONNECTION_PRODUCT"]:
        return []
    types, bandwidths = chosen.get("/connection/type", []), chosen.get("/connection/bandwidth", [])
    return [_row(kind, int(each)) for kind in types if kind in _TYPES for each in bandwidths if _is_listed(each)]


def _chosen(criteria: list[Json], wrong: list[Problem]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for index, each in enumerate(criteria):
        at = f"/filter/and/{index}"
        match each:
            case {"property": str(name), "operator": "=" | "IN", "values": [*values], **extra} if not extra:
                if _PROPERTY.fullmatch(name) is None or name in chosen:
                    wrong.append(Problem(f"{at}/property", "is not known, or stands there already"))
                elif not 0 < len(values) <= _MOST or any(type(value) is not str for value in values):
                    wrong.append(Problem(f"{at}/values", f"must be 1 to {_MOST} texts"))
                else:
                    chosen[name] = values
            case _:
                wrong.append(Problem(at, "must be {property, operator, values} with the operator `=` or `IN`"))
    return chosen


def _is_listed(bandwidth: str) -> bool:
    return bandwidth in map(str, _MONTHLY)


def _row(kind: str, bandwidth: int) -> Json:
    monthly, once = _TYPES[kind]
    return {
        "type": "VIRTUAL_CONNECTION_PRODUCT",
        "code": f"{kind}_{bandwidth}",
        "name": "Equinix Fabric Virtual Connection",
        "description": f"{kind}, {bandwidth} Mbps",
        "charges": [
            {"type": "MONTHLY_RECURRING", "price": _MONTHLY[bandwidth] + monthly},
            {"type": "NON_RECURRING", "price": once},
        ],
        "currency": "USD",
        "termLength": 1,
        "connection": {"type": kind, "bandwidth": bandwidth},
    }
