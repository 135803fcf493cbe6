"""The kill harness: crash points one by one, random kills, and the wrong designs that both must catch."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from marks import promise

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.ledger.files import Anchor
from assisted_benchmark.ledger.store import Store
from assisted_benchmark.suite import kills
from assisted_benchmark.suite.dispatch_designs import (
    AFTER_CLAIM,
    AFTER_SEND,
    BEFORE_CLAIM,
    STEPS,
    Design,
    Ledgered,
    ReadThenUpdate,
    RecoverToSealed,
    SendFirst,
)
from assisted_benchmark.suite.kills import Groups
from proofs import kills as command

GROUP = b"g" * 32


class Crash(BaseException):
    """The process is gone: not even an `except Exception` sees it."""


def crash_at(step: str) -> Callable[[str], None]:
    def at(name: str) -> None:
        if name == step:
            raise Crash

    return at


def go_on(_step: str) -> None:
    pass


def sends_through_a_crash(design: Callable[[Path], Design], folder: Path, step: str) -> int:
    """How often the group is sent, if the first dispatcher dies at `step` and another one takes over."""
    arrived: Counter[bytes] = Counter()

    def send(group: bytes) -> None:
        arrived[group] += 1

    first = design(folder)
    first.open_run("run-1", [GROUP])
    with pytest.raises(Crash):
        first.dispatch("run-1", GROUP, send, crash_at(step))
    first.close()
    second = design(folder)
    second.recover("run-1")
    second.dispatch("run-1", GROUP, send, go_on)
    second.dispatch("run-1", GROUP, send, go_on)
    assert second.unsound() == 0
    second.close()
    return arrived[GROUP]


@promise("K11", "K13")
@pytest.mark.parametrize(("step", "sends"), list(zip(STEPS, [1, 0, 1, 1], strict=True)), ids=STEPS)
def test_a_crash_at_any_step_never_sends_twice(tmp_path, step, sends):
    assert sends_through_a_crash(Ledgered, tmp_path, step) == sends


@promise("K13")
@pytest.mark.parametrize(
    ("design", "step"),
    [(SendFirst, AFTER_SEND), (RecoverToSealed, AFTER_SEND)],
    ids=["send_first", "recover_to_sealed"],
)
def test_a_wrong_design_sends_twice_at_its_crash_point(tmp_path, design, step):
    assert sends_through_a_crash(design, tmp_path, step) == 2


def sends_of_two_dispatchers(design: Callable[[Path], Design], folder: Path, step: str) -> int:
    """How often the group is sent, if a second dispatcher runs while the first one stands at `step`."""
    arrived: Counter[bytes] = Counter()

    def send(group: bytes) -> None:
        arrived[group] += 1

    first, second = design(folder), design(folder)
    first.open_run("run-1", [GROUP])

    def overtake(name: str) -> None:
        if name == step:
            second.dispatch("run-1", GROUP, send, go_on)

    first.dispatch("run-1", GROUP, send, overtake)
    first.close()
    second.close()
    return arrived[GROUP]


@promise("K13")
@pytest.mark.parametrize("step", STEPS)
def test_a_dispatcher_that_is_overtaken_at_any_step_never_sends_twice(tmp_path, step):
    assert sends_of_two_dispatchers(Ledgered, tmp_path, step) == 1


@promise("K13")
def test_a_read_that_authorises_sends_twice_when_it_is_overtaken(tmp_path):
    assert sends_of_two_dispatchers(ReadThenUpdate, tmp_path, BEFORE_CLAIM) == 2


@promise("K12a", "K13")
@pytest.mark.parametrize(
    ("owner", "method"), [(Anchor, "write"), (Store, "commit"), (Store, "write")], ids=["anchor", "commit", "write"]
)
def test_a_crash_inside_the_claim_never_sends(tmp_path, monkeypatch, owner, method):
    arrived: list[bytes] = []
    first = Ledgered(tmp_path)
    first.open_run("run-1", [GROUP])

    def die(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(owner, method, die)
        with pytest.raises(Crash):
            first.dispatch("run-1", GROUP, arrived.append, go_on)
    assert arrived == []
    first.close()
    second = Ledgered(tmp_path)
    second.recover("run-1")
    second.dispatch("run-1", GROUP, arrived.append, go_on)
    assert len(arrived) <= 1
    assert second.unresolved([GROUP]) == 1 - len(arrived)
    second.close()


@promise("K13")
@pytest.mark.parametrize("broker", command.ARENAS)
def test_random_kills_of_what_we_have_leave_no_double(broker, capsys):
    assert command.main(["--kills", "12", "--seed", "test", "--broker", broker]) == 0
    assert "double dispatches     0" in capsys.readouterr().out


def doubles_in_time(arena, some):
    """Whether doubles are found in ten times so many kills: when one strikes is the machine's to say."""
    tallies = (kills.kill(arena, some, SeededChance(f"test {number}")) for number in range(10))
    return any(tally.doubles > 0 for tally in tallies if tally.kills >= some)


@promise("K13")
def test_random_kills_find_the_design_that_sends_first():
    assert doubles_in_time(partial(Groups, SendFirst), 60)


@promise("K13")
@pytest.mark.parametrize("broker", ["live", "mutation"])
def test_random_kills_find_a_broker_over_a_ledger_that_sends_first(broker):
    arena = command.ARENAS[broker][1]["send_first"]
    assert doubles_in_time(arena, 30)


def test_a_double_or_a_missed_control_fails_the_command(monkeypatch, capsys):
    tally = {"kills": 1, "sends": 2, "groups": 1, "doubles": 0, "unresolved": 0, "unsound": 0}
    doubled = kills.Tally(**(tally | {"doubles": 1}))
    clean = kills.Tally(**tally)
    ours = [arena for arena, _ in command.ARENAS.values()]
    for of_ours, of_controls, code in ((clean, doubled, 0), (doubled, doubled, 1), (clean, clean, 1)):
        monkeypatch.setattr(command, "kill", lambda arena, *_, a=of_ours, b=of_controls: a if arena in ours else b)
        assert command.main(["--control", "--broker", "all"]) == code
    unsound = kills.Tally(**(tally | {"unsound": 1}))
    monkeypatch.setattr(command, "kill", lambda *_: unsound)
    assert command.main([]) == 1
    every = sum(1 + len(controls) for _, controls in command.ARENAS.values())
    assert len(capsys.readouterr().out.splitlines()) == 3 * every + 1


EVERY = {
    f"{broker}-{name}": make
    for broker, (ours, controls) in command.ARENAS.items()
    for name, make in {"ours": ours, **controls}.items()
}
# Of a bare ledger there are a hundred groups to a run, of brokers twenty; of the first two runs each is dispatched.
SENDS = {"ledger": 200, "live": 40, "mutation": 40, "capability": 40}


@pytest.mark.parametrize("which", EVERY)
def test_undisturbed_every_design_sends_each_group_once(tmp_path, which):
    sends = SENDS[which.partition("-")[0]]
    told = []
    with closing(EVERY[which](tmp_path)) as arena:
        arena.recover(1)
        for _ in range(2):
            arena.race(1, lambda: told.append("."))
            arena.listen()
        tally = arena.count(1, 0)
    # A key of a capability broker is asked for by two threads.
    assert len(told) == 2 * sends * (2 if which.startswith("capability") else 1)
    assert (tally.sends, tally.groups, tally.doubles, tally.unresolved, tally.unsound) == (sends, sends, 0, 0, 0)


def test_a_dispatcher_that_fails_by_itself_is_no_kill():
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(kills.LedgerError) as caught:
        kills.finish(fail)
    assert caught.value.reason is kills.Reason.COULD_NOT_RUN


def test_the_steps_of_a_dispatch_come_in_order(tmp_path):
    seen: list[str] = []
    design = Ledgered(tmp_path)
    design.open_run("run-1", [GROUP])
    design.dispatch("run-1", GROUP, lambda _: seen.append("send"), seen.append)
    assert seen == [BEFORE_CLAIM, AFTER_CLAIM, "send", AFTER_SEND, STEPS[-1]]
    design.close()
