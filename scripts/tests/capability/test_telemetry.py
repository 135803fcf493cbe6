"""Telemetry: bounded, counted, never blocking, its owner's alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise
from registry_bench import PULP, PULP_TOOLS

from assisted_benchmark.capability.telemetry import (
    MAX_STREAMS,
    MAX_STREAMS_OF_CLIENT,
    MAX_VALUES,
    Owner,
    Sample,
    Telemetry,
)
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.reasons import Reason

OWNER = Owner("client-1", "registration-1", "one", "grant-1")
OPERATION = PULP.operation("dev.pulp.telemetry/subscribe@1")


class Bench:
    def __init__(self):
        self.clock = ManualClock()
        self.telemetry = Telemetry(self.clock, SeededChance("telemetry"), lambda channel: channel == "secret")

    def subscribe(self, channels=("level",), max_hz=10, buffer=3, owner=OWNER):
        told = self.telemetry.subscribe(owner, channels, max_hz, buffer)
        if isinstance(told, dict):
            assert PULP_TOOLS.result_faults(OPERATION, told) is None
            return told["stream_id"]
        return told

    def offer(self, *values, channel="level", after_ns=SECOND // 10):
        for value in values:
            self.telemetry.offer(Sample(channel, (value,)))
            self.clock.advance(after_ns)

    def poll(self, stream, owner=OWNER):
        told = self.telemetry.poll(owner, stream)
        if isinstance(told, dict):
            assert PULP_TOOLS.result_faults(OPERATION, told) is None
            return ([(each["sequence"], *each.get("values", ())) for each in told["samples"]], told["dropped"])
        return told


@promise("C30")
def test_a_stream_gives_what_its_channels_showed_once():
    bench = Bench()
    stream = bench.subscribe()
    bench.offer(0.25, 0.5)
    bench.offer(9.0, channel="other")
    told = bench.telemetry.poll(OWNER, stream)
    start = ManualClock().now().mono_ns
    assert told == {
        "action": "polled",
        "stream_id": stream,
        "available": True,
        "dropped": 0,
        "samples": [
            {
                "sequence": number,
                "channel": "level",
                "sampled_at_ns": start + (number - 1) * SECOND // 10,
                "redacted": False,
                "shape": "scalar",
                "values": [value],
            }
            for number, value in ((1, 0.25), (2, 0.5))
        ],
    }
    assert bench.poll(stream) == ([], 0)


@promise("C30")
def test_the_oldest_give_way_to_the_newest_and_are_counted():
    bench = Bench()
    stream = bench.subscribe(buffer=3)
    bench.offer(1.0, 2.0, 3.0, 4.0, 5.0)
    assert bench.poll(stream) == ([(3, 3.0), (4, 4.0), (5, 5.0)], 2)
    bench.offer(6.0)
    assert bench.poll(stream) == ([(6, 6.0)], 0)


@promise("C30")
def test_a_slow_reader_takes_nothing_from_another():
    bench = Bench()
    slow = bench.subscribe(buffer=1)
    quick = bench.subscribe(buffer=3)
    for value in (1.0, 2.0, 3.0):
        bench.offer(value)
        assert bench.poll(quick)[0][-1][1] == value
    assert bench.poll(slow) == ([(3, 3.0)], 2)


@promise("C30")
def test_a_channel_is_sampled_no_faster_than_was_asked_for():
    bench = Bench()
    stream = bench.subscribe(channels=("level", "other"), max_hz=10, buffer=100)
    bench.offer(1.0, 2.0, 3.0, 4.0, after_ns=SECOND // 20)  # twice as fast
    bench.offer(9.0, channel="other")
    assert bench.poll(stream) == ([(1, 1.0), (2, 3.0), (3, 9.0)], 0)


@promise("C30")
def test_values_of_a_sensitive_channel_are_redacted_before_they_are_kept():
    bench = Bench()
    stream = bench.subscribe(channels=("secret", "level"))
    bench.offer(0.123, channel="secret")
    bench.offer(0.5)
    told = bench.telemetry.poll(OWNER, stream)
    assert [each["redacted"] for each in told["samples"]] == [True, False]
    assert "values" not in told["samples"][0]
    assert "0.123" not in str(told)
    assert PULP_TOOLS.result_faults(OPERATION, told) is None


@promise("C30")
@pytest.mark.parametrize("field", Owner._fields)
def test_a_stream_does_not_exist_for_anybody_else(field):
    bench = Bench()
    stream = bench.subscribe()
    bench.offer(1.0)
    other = OWNER._replace(**{field: "other"})
    assert bench.telemetry.poll(other, stream) is Reason.NOT_FOUND
    assert bench.telemetry.unsubscribe(other, stream) is Reason.NOT_FOUND
    assert bench.poll(stream) == ([(1, 1.0)], 0)


@promise("C30")
def test_a_stream_that_was_ended_is_gone():
    bench = Bench()
    stream = bench.subscribe()
    told = bench.telemetry.unsubscribe(OWNER, stream)
    assert PULP_TOOLS.result_faults(OPERATION, told) is None
    assert told == {"action": "unsubscribed", "stream_id": stream}
    assert bench.poll(stream) is Reason.NOT_FOUND
    assert bench.telemetry.unsubscribe(OWNER, stream) is Reason.NOT_FOUND
    bench.offer(1.0)  # to nobody


@promise("C25", "C30")
def test_streams_end_with_the_grant_or_the_registration_that_carried_them():
    bench = Bench()
    mine = bench.subscribe()
    regranted = bench.subscribe(owner=OWNER._replace(grant="grant-2"))
    elsewhere = bench.subscribe(owner=OWNER._replace(grant="grant-3", registration="registration-2"))
    assert bench.telemetry.end(grant="grant-1") == 1
    assert bench.poll(mine) is Reason.NOT_FOUND
    assert bench.poll(regranted, OWNER._replace(grant="grant-2")) == ([], 0)
    assert bench.telemetry.end(registration="registration-1") == 1
    assert bench.telemetry.end(registration="registration-1", grant="grant-1") == 0
    assert bench.poll(elsewhere, OWNER._replace(grant="grant-3", registration="registration-2")) == ([], 0)


@promise("C30")
def test_the_number_of_streams_is_bounded_for_a_client_and_in_all():
    bench = Bench()
    for client in range(MAX_STREAMS // MAX_STREAMS_OF_CLIENT):
        owner = OWNER._replace(client=f"client-{client}")
        streams = [bench.subscribe(owner=owner) for _ in range(MAX_STREAMS_OF_CLIENT)]
        assert bench.subscribe(owner=owner) is Reason.RESOURCE_EXHAUSTED
        assert len(set(streams)) == MAX_STREAMS_OF_CLIENT
    assert bench.subscribe(owner=OWNER._replace(client="one-more")) is Reason.RESOURCE_EXHAUSTED
    bench.telemetry.unsubscribe(OWNER._replace(client="client-0"), next(iter(bench.telemetry._streams)))
    assert isinstance(bench.subscribe(owner=OWNER._replace(client="one-more")), str)


@promise("C30")
def test_a_sample_with_too_many_values_is_lost_and_counted():
    bench = Bench()
    stream = bench.subscribe()
    bench.telemetry.offer(Sample("level", (0.0,) * (MAX_VALUES + 1), "vector"))
    bench.clock.advance(SECOND)
    bench.telemetry.offer(Sample("level", (0.0,) * MAX_VALUES, "vector"))
    samples, dropped = bench.poll(stream)
    assert ([each[0] for each in samples], len(samples[0]), dropped) == ([2], MAX_VALUES + 1, 1)


def test_numbers_that_json_has_not_are_told_by_name():
    bench = Bench()
    stream = bench.subscribe(buffer=9)
    bench.offer(math.nan, math.inf, -math.inf, 1.5)
    assert bench.poll(stream) == ([(1, "NaN"), (2, "Infinity"), (3, "-Infinity"), (4, 1.5)], 0)


def test_whether_the_source_is_there_is_the_hosts_word():
    bench = Bench()
    assert bench.telemetry.poll(OWNER, bench.subscribe(), available=False)["available"] is False


@promise("C30")
@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_nothing_is_lost_uncounted(rounds, buffer):
    bench = Bench()
    stream = bench.subscribe(buffer=buffer)
    offered = seen = lost = 0
    for count in rounds:
        bench.offer(*map(float, range(count)))
        offered += count
        samples, dropped = bench.poll(stream)
        seen, lost = seen + len(samples), lost + dropped
        assert len(samples) <= buffer
    assert seen + lost == offered
