"""One claimed call to the one server whose process was looked at."""

import os
import socket
import threading

import pytest
from marks import promise
from router_bench import (
    CLOCK,
    DO,
    HAND,
    a_contract,
    a_launch,
    a_router,
    a_script,
    answer,
    claimed,
    noted,
    soon,
    told,
)

from assisted_benchmark.contract.model import tools_digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.ports import NotSent, Observation, Replied, Unavailable, Uncertain
from assisted_benchmark.mcp_router.last_words import CHARACTERS
from assisted_benchmark.mcp_router.router import Router

DRIFTED = ('tool `do` at /description: was `"Does as it is told."`, is `"Does something else."`',)


@pytest.fixture
def hand(launcher, tmp_path):
    """A router over the hand-written server, which was observed and is as pinned."""
    router = a_router(launcher, tmp_path)
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    yield router
    router.close()


@promise("W11")
def test_an_observation_is_the_launch_digest_and_the_digest_of_the_raw_tool_list(launcher, tmp_path):
    router = a_router(launcher, tmp_path)
    launches = router.launches()
    seen = router.observe("hand", fresh=False, deadline=soon())
    assert seen == Observation(launches["hand"], tools_digest([DO]), ())
    router.close()


def test_nothing_is_started_before_it_is_observed(launcher, tmp_path):
    router = a_router(launcher, tmp_path)
    router.launches()
    assert told(router, "echo") == NotSent(
        Reason.SERVER_UNAVAILABLE, "no process of this server stands as it was pinned"
    )
    assert noted(tmp_path, "starts") == []
    assert router.close() == {"hand": ()}


@promise("L16")
def test_a_claimed_call_reaches_its_server_once(hand, tmp_path):
    assert answer(told(hand, "echo")) == "echo"
    assert noted(tmp_path, "calls") == ["echo"]
    assert hand.calls == {"hand": 1}


@promise("L14")
def test_two_servers_with_the_same_tool_never_get_each_others_calls(launcher, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    router = Router(a_contract(one=a_launch(one), other=a_launch(other)), tmp_path, CLOCK, launcher)
    for name in ("one", "other"):
        router.observe(name, fresh=False, deadline=soon())
    assert answer(told(router, "a", "one")) == "a"
    assert answer(told(router, "b", "other")) == "b"
    assert answer(told(router, "c", "other")) == "c"
    assert (noted(one, "calls"), noted(other, "calls")) == (["a"], ["b", "c"])
    assert router.calls == {"one": 1, "other": 2}
    router.close()


def test_an_unknown_server_or_tool_gets_nothing(hand, tmp_path):
    seen = hand.observe("hande", fresh=False, deadline=soon())
    assert isinstance(seen, Unavailable)
    assert seen.reason is Reason.UNKNOWN_SERVER
    assert told(hand, "x", "hande") == NotSent(Reason.SERVER_UNAVAILABLE, "the contract has no such server")
    other = claimed("x", tool="undo")
    assert hand.send(other, gate=lambda: True, deadline=soon()) == NotSent(
        Reason.SERVER_UNAVAILABLE, "the server has no such tool in the contract"
    )
    assert not hand.cancel("hande", "why")
    assert noted(tmp_path, "calls") == []


@promise("L19")
def test_a_gate_that_says_no_right_before_the_write_keeps_the_call_from_the_server(hand, tmp_path):
    end = hand.send(claimed("echo"), gate=lambda: False, deadline=soon())
    assert isinstance(end, NotSent)
    assert end.reason is Reason.EXPIRED
    assert answer(told(hand, "after")) == "after"
    assert noted(tmp_path, "calls") == ["after"]
    assert hand.calls == {"hand": 1}


@promise("L18")
@pytest.mark.parametrize("what", ["hang", "die", "kill-keeper"])
def test_a_server_that_acts_and_is_silent_leaves_the_call_uncertain_and_is_not_asked_again(hand, tmp_path, what):
    end = told(hand, what, seconds=0.5)
    assert isinstance(end, Uncertain)
    assert end.reason is Reason.OUTCOME_UNKNOWN
    assert noted(tmp_path, "calls") == [what]
    assert hand.calls == {"hand": 1}


def test_a_server_that_died_after_the_look_gets_nothing_and_is_not_started_anew_by_a_send(hand, tmp_path):
    told(hand, "die")
    end = told(hand, "echo")
    assert isinstance(end, NotSent)
    assert end.reason is Reason.SERVER_UNAVAILABLE
    assert noted(tmp_path, "calls") == ["die"]
    assert len(noted(tmp_path, "starts")) == 1


@promise("L20")
def test_a_server_that_died_is_started_anew_by_a_look_and_compared_again(hand, tmp_path):
    before = hand.observe("hand", fresh=False, deadline=soon())
    told(hand, "die")
    assert hand.observe("hand", fresh=False, deadline=soon()) == before
    assert len(noted(tmp_path, "starts")) == 2
    assert answer(told(hand, "echo")) == "echo"


@promise("L20")
def test_drift_on_a_restart_is_seen_and_named(launcher, tmp_path):
    router = a_router(launcher, tmp_path, "other-on-restart")
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    told(router, "die")
    assert router.observe("hand", fresh=False, deadline=soon()).drift == DRIFTED
    assert isinstance(told(router, "echo"), NotSent)
    assert noted(tmp_path, "calls") == ["die"]
    router.close()


@promise("L20", "W13")
def test_drift_after_list_changed_is_seen_by_the_next_look_and_no_call_slips_in_before_it(hand, tmp_path):
    assert answer(told(hand, "change")) == "changed"
    assert told(hand, "echo") == NotSent(Reason.SERVER_UNAVAILABLE, "the tool list changed after it was looked at")
    assert hand.observe("hand", fresh=False, deadline=soon()).drift == DRIFTED
    assert isinstance(told(hand, "echo"), NotSent)
    assert noted(tmp_path, "calls") == ["change"]


@promise("L20")
def test_only_a_fresh_look_lists_again_without_a_reason(launcher, tmp_path):
    router = a_router(launcher, tmp_path, "flip-flop")
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    assert router.observe("hand", fresh=True, deadline=soon()).drift == DRIFTED
    assert router.observe("hand", fresh=True, deadline=soon()).drift == ()
    assert len(noted(tmp_path, "lists")) == 3
    assert len(noted(tmp_path, "starts")) == 1
    router.close()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("exit", Reason.SERVER_UNAVAILABLE),
        ("exit-after-initialize", Reason.SERVER_UNAVAILABLE),
        ("silent", Reason.DEADLINE_EXCEEDED),
        ("twice", Reason.DUPLICATE_TOOL),
        ("never-settles", Reason.INCOMPLETE_LISTING),
    ],
)
def test_a_server_that_cannot_be_looked_at_is_unavailable_and_ended(launcher, tmp_path, mode, reason):
    router = a_router(launcher, tmp_path, mode)
    seen = router.observe("hand", fresh=False, deadline=soon(20 if mode != "silent" else 0.5))
    assert isinstance(seen, Unavailable)
    assert seen.reason is reason
    assert isinstance(told(router, "echo"), NotSent)
    assert noted(tmp_path, "calls") == []
    assert [ending.left for ending in router.close()["hand"]] == [()]


def test_noise_before_the_first_message_is_no_message(launcher, tmp_path):
    for mode in ("flood-stdout", "flood-stderr"):
        folder = tmp_path / mode
        folder.mkdir()
        router = a_router(launcher, folder, mode)
        assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
        assert answer(told(router, "echo")) == "echo"
        router.close()


@pytest.mark.parametrize(
    ("mode", "seconds", "said"),
    [
        ("exit", 20, "; it exited with status 5"),
        ("signalled", 20, "; it was ended by SIGKILL"),
        ("complain", 20, "; it exited with status 7; its standard error ends: …%s | no module\\u001b[31m `[redacted]`"),
        ("grumble", 0.5, "; its standard error ends: waiting for a lock"),
    ],
)
def test_a_server_that_ends_at_its_start_is_told_of_with_its_last_words(launcher, tmp_path, mode, seconds, said):
    router = a_router(launcher, tmp_path, mode, env=(("TOKEN", "s3cret"), ("SHORT", "no")))
    seen = router.observe("hand", fresh=False, deadline=soon(seconds))
    _, parted, rest = seen.detail.partition(";")
    last = " | no module\x1b[31m `[redacted]`"
    assert parted + rest == said.replace("%s", "x" * (CHARACTERS - len(last)))
    router.close()


def test_what_a_server_wrote_after_it_got_a_call_is_repeated_nowhere(hand, tmp_path):
    assert answer(told(hand, "fall-silent")) == "once"
    seen = hand.observe("hand", fresh=False, deadline=soon())
    assert seen == Unavailable(Reason.SERVER_UNAVAILABLE, "the server ended before it answered tools/list")


@promise("W10a")
def test_a_server_that_fills_its_standard_error_in_a_call_does_not_stand_still(hand):
    assert answer(told(hand, "flood")) == "flooded"


@promise("L22")
@pytest.mark.parametrize("what", ["both", "twice"])
def test_an_answer_that_contradicts_itself_is_no_answer(hand, what):
    end = told(hand, what)
    assert isinstance(end, Uncertain)
    assert end.reason is Reason.RESULT_INVALID
    assert hand.calls == {"hand": 1}


@promise("L22")
def test_an_answer_to_another_id_is_no_answer(hand):
    assert answer(told(hand, "foreign")) == "mine"


@pytest.mark.parametrize(
    ("what", "result"),
    [
        ("fail", b'{"content":[{"text":"\\"no\\"","type":"text"}],"isError":true}'),
        ("error", b'{"code":-32602,"message":"no"}'),
    ],
)
def test_what_failed_says_so_with_the_servers_own_bytes(hand, what, result):
    end = told(hand, what)
    assert isinstance(end, Replied)
    assert (end.failed, end.result) == (True, result)
    assert end.wrote.mono_ns <= end.replied.mono_ns


def test_a_call_in_flight_can_be_cancelled_from_another_thread(hand, tmp_path):
    os.mkfifo(tmp_path / "acted")
    ends = []
    thread = threading.Thread(target=lambda: ends.append(told(hand, "hang")))
    thread.start()
    assert (tmp_path / "acted").read_text() == "hang"
    assert hand.cancel("hand", "the run was aborted")
    thread.join()
    assert isinstance(ends[0], Uncertain)
    assert ends[0].reason is Reason.OUTCOME_UNKNOWN
    assert not hand.cancel("hand", "nothing is in flight")


def test_calls_of_many_threads_take_turns(hand, tmp_path):
    ends = []
    threads = [threading.Thread(target=lambda n=n: ends.append(answer(told(hand, f"{n}")))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == sorted(noted(tmp_path, "calls")) == [str(n) for n in range(8)]


def test_a_closed_router_starts_nothing(hand, tmp_path):
    assert [ending.by for ending in hand.close()["hand"]] == ["stdin"]
    assert hand.observe("hand", fresh=True, deadline=soon()) == Unavailable(
        Reason.SERVER_UNAVAILABLE, "the router is closed"
    )
    assert len(noted(tmp_path, "starts")) == 1
    assert len(hand.close()["hand"]) == 1


@promise("L20", "W10")
def test_a_script_that_is_replaced_after_the_launch_was_sealed_is_drift(launcher, tmp_path):
    script = a_script(tmp_path)
    router = a_router(launcher, tmp_path, script=script)
    router.launches()
    script.write_text(HAND.read_text() + "\n")
    seen = router.observe("hand", fresh=False, deadline=soon())
    assert isinstance(seen, Unavailable)
    assert seen.reason is Reason.ARTIFACT_DRIFT
    assert noted(tmp_path, "starts") == []


@promise("L20", "W10")
def test_a_script_that_is_replaced_while_its_server_runs_is_drift_at_the_next_fresh_look(launcher, tmp_path):
    script = a_script(tmp_path)
    router = a_router(launcher, tmp_path, script=script)
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    script.write_text(HAND.read_text() + "\n")
    seen = router.observe("hand", fresh=True, deadline=soon())
    assert isinstance(seen, Unavailable)
    assert seen.reason is Reason.ARTIFACT_DRIFT
    assert isinstance(told(router, "echo"), NotSent)
    assert noted(tmp_path, "calls") == []
    router.close()


def test_a_package_that_changes_after_the_launch_was_sealed_is_named(launcher, tmp_path, monkeypatch):
    pth = tmp_path / "late.pth"
    found = [()]
    monkeypatch.setattr("assisted_benchmark.mcp_router.launch.startup_files", lambda **_: found[0])
    router = a_router(launcher, tmp_path)
    router.launches()
    pth.write_text("import os\n")
    found[0] = (str(pth),)
    seen = router.observe("hand", fresh=False, deadline=soon())
    assert seen == Unavailable(Reason.ARTIFACT_DRIFT, f"what is launched is not what was sealed: `{pth}`")


class _Channel:
    """A control end that notes when it was handed over."""

    def __init__(self):
        self.own, self.theirs = socket.socketpair()
        self.handed = 0

    @property
    def child_fd(self):
        return self.theirs.fileno()

    def started(self):
        self.handed += 1
        self.theirs.close()


def test_a_workload_gets_its_control_channel_as_descriptor_three_and_anew_at_each_start(launcher, tmp_path):
    channels = []

    def control(server):
        assert server == "hand"
        channels.append(_Channel())
        return channels[-1]

    contract = a_contract(hand=a_launch(tmp_path, control=True))
    router = Router(contract, tmp_path, CLOCK, launcher, control=control)
    router.observe("hand", fresh=False, deadline=soon())
    assert answer(told(router, "env"))["ASSISTED_BENCHMARK_CONTROL_FD"] == "3"
    assert 3 in answer(told(router, "place"))["fds"]
    told(router, "die")
    assert channels[0].own.recv(1) == b""
    router.observe("hand", fresh=False, deadline=soon())
    assert [channel.handed for channel in channels] == [1, 1]
    router.close()
    for channel in channels:
        channel.own.close()


def test_an_open_closure_is_repeated_in_the_stamps(launcher, tmp_path):
    assert a_router(launcher, tmp_path).stamps == ()
    assert a_router(launcher, tmp_path, unpinned=True).stamps == ("artifacts: unpinned",)
