"""The brokers' lists of named checks: each check is data, and a broker can be made without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import evolve, frozen

from assisted_benchmark.capability.admission import EARLY, LATE
from assisted_benchmark.capability.artifacts import ACL, Artifacts
from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.carrying import LOOKS
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.checks import CHECKS as LIVE_CHECKS
from assisted_benchmark.live_policy.opening import OPENING
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.checks import CHECKS as MUTATION_CHECKS
from assisted_benchmark.mutation.checks import Checks
from assisted_benchmark.suite.matrix.guards import Guard, How

# A look gives the reason that it finds; this is the one that it is there for.
_LOOKS: Final = {
    "deadline": Reason.DEADLINE_EXCEEDED,
    "publication": Reason.WRONG_PUBLICATION,
    "grant": Reason.REVOKED,
    "session": Reason.SESSION_ENDED,
    "receipt": Reason.CANCELLED,
}


@frozen(kw_only=True)
class CheckList:
    """One list: where it stands, and what is made with it by which parameter.

    `guards` are its checks, in its order; `without` gives it without the check of one of them, `noting` with tests
    that tell whenever one of them says that something is wrong.
    """

    module: str
    name: str
    made: type
    parameter: str
    guards: tuple[Guard, ...]
    without: Callable[[Any, str], Any]
    noting: Callable[[Any, Callable[[str], None]], Any]


def _listed(module: str, name: str, made: type, parameter: str, checks: tuple[Any, ...]) -> CheckList:
    """A list that is a tuple of checks."""
    named = dict(_named(f"{module}:{name}", checks))

    def without(whole: tuple[Any, ...], lacked: str) -> tuple[Any, ...]:
        return tuple(each for each in whole if each is not named[lacked])

    return CheckList(
        module=module,
        name=name,
        made=made,
        parameter=parameter,
        guards=tuple(_guard(module, name, each, check) for each, check in named.items()),
        without=without,
        noting=lambda _, tell: tuple(_noting(check, each, tell) for each, check in named.items()),
    )


def _phased(module: str, name: str, made: type, parameter: str, checks: Checks) -> CheckList:
    """The mutation broker's checks, which stand in phases and have names of their own."""
    phases = ("proposal", "token", "binding", "answer", "sending")
    listed = tuple(check for phase in phases for check in getattr(checks, phase))
    named = dict(_named(f"{module}:{name}", listed))
    names = {id(check): each for each, check in named.items()}

    def noting(whole: Checks, tell: Callable[[str], None]) -> Checks:
        told = {
            phase: tuple(_noting(check, names[id(check)], tell) for check in getattr(whole, phase)) for phase in phases
        }
        return evolve(whole, **told)

    return CheckList(
        module=module,
        name=name,
        made=made,
        parameter=parameter,
        guards=tuple(_guard(module, name, each, check) for each, check in named.items()),
        without=lambda whole, lacked: whole.without(named[lacked].name),
        noting=noting,
    )


def _noting(check: Any, name: str, tell: Callable[[str], None]) -> Any:
    """The same check, which tells its name when it says no."""

    def test(*subject: Any) -> Any:
        if wrong := check.test(*subject):
            tell(name)
        return wrong

    return evolve(check, test=test)


def _named(place: str, checks: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Each check by the name of its guard: its own name if it has one, its reason, a number where that is not all."""
    seen: Counter[str] = Counter()
    for check in checks:
        label = f"{place}.{check.name}" if hasattr(check, "name") else place
        base = f"{label}/{_reason(check).value}"
        seen[base] += 1
        yield (base if seen[base] == 1 else f"{base}.{seen[base]}"), check


def _guard(module: str, name: str, each: str, check: Any) -> Guard:
    return Guard(name=each, reason=_reason(check), how=How.CHECK, module=module, function=name, line=0)


def _reason(check: Any) -> Reason:
    found: Reason = check.reason if hasattr(check, "reason") else _LOOKS[check.name]
    return found


LISTS: Final = (
    _listed("live_policy.checks", "CHECKS", LiveBroker, "checks", LIVE_CHECKS),
    _listed("live_policy.opening", "OPENING", LiveBroker, "opening", OPENING),
    _phased("mutation.checks", "CHECKS", MutationBroker, "checks", MUTATION_CHECKS),
    _listed("capability.admission", "EARLY", CapabilityBroker, "early", EARLY),
    _listed("capability.admission", "LATE", CapabilityBroker, "late", LATE),
    _listed("capability.carrying", "LOOKS", CapabilityBroker, "looks", LOOKS),
    _listed("capability.artifacts", "ACL", Artifacts, "acl", ACL),
)
