"""The open questions of a session, and a session whose descriptors fail."""

import os

from agent_peers import MS, Agent
from marks import promise

from assisted_benchmark.gateway.agent_session import AgentSession
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.questions import Questions
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.clock import Deadline, SystemClock
from assisted_benchmark.wire.frames import Response
from assisted_benchmark.wire.outcomes import Odd
from assisted_benchmark.wire.relay import Silence


def within(ms):
    return Deadline.after(SystemClock(), ms * MS)


@promise("W7")
def test_after_the_end_of_a_session_every_question_has_failed_those_that_come_later_too():
    questions = Questions()
    before = questions.open()
    questions.close()
    assert [each.wait(within(20_000)) for each in (before, questions.open())] == [Silence.FAILED, Silence.FAILED]


@promise("W4")
def test_an_answer_between_the_end_of_the_wait_and_its_noting_is_late_too():
    questions = Questions()
    question = questions.open()
    assert question.wait(within(0)) is Silence.TIMED_OUT
    assert questions.take(Response(question.id, "yes")) is Odd.SETTLED_ID
    assert question.wait(within(0)) is Silence.TIMED_OUT


def test_an_input_that_cannot_be_read_ends_the_session():
    reading, writing = os.pipe()
    os.close(reading)
    AgentSession(Face(()), Session("run-1", "agent-1"), SystemClock(), read_fd=writing, write_fd=writing).serve()
    os.close(writing)


def test_an_agent_that_says_nothing_hears_nothing():
    agent = Agent()
    assert agent.rest() == []
    agent.close()
