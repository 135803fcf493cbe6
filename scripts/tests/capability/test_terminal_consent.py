"""The operator at a terminal: what is shown, what counts as a yes, and where nobody can be asked."""

import os
import pty
import threading

import pytest
from capability_bench import EVALUATE, EVERYTHING, PULP, STATE_READ, CapabilityBench
from marks import promise

from assisted_benchmark.capability import terminal_consent
from assisted_benchmark.capability.ports import Prompt, Verdict, Wanted
from assisted_benchmark.capability.terminal_consent import TerminalConsent
from assisted_benchmark.kernel.clock import SECOND, Deadline, ManualClock, SystemClock
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.reasons import Reason

WANTED = Wanted("client-1", "registration-1", "instance-1", "publication-1", "observe", (STATE_READ, "other\u202e@1"))
PROMPT = Prompt(digest_of("test@1", b"prompt"), WANTED)


def within(seconds=20):
    return Deadline.after(SystemClock(), int(seconds * SECOND))


class Terminal:
    """A terminal of the test's own: what `types` is typed, `shown` is what stands on it."""

    def __init__(self):
        self._ours, self._theirs = pty.openpty()
        self.path = os.ttyname(self._theirs)
        self.consent = TerminalConsent(PULP, terminal=self.path)
        self.text = b""

    def asked(self, *typed, prompt=PROMPT, deadline=None):
        """Ask, type each piece once the question stands there, and wait; the answer."""
        came = []
        deadline = deadline or within()
        thread = threading.Thread(target=lambda: came.append(self.consent.ask(prompt, deadline=deadline)))
        thread.start()
        self.shows(b"> ")
        for piece in typed:
            self.types(piece)
        thread.join(30)
        return came[0]

    def types(self, piece):
        os.write(self._ours, piece)

    def shows(self, what):
        while what not in self.text:
            self.text += os.read(self._ours, 4096)

    def close(self):
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    made.close()


@promise("C18")
@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_the_one_word_typed_whole_consents_and_everything_is_shown_before(terminal, end):
    assert terminal.asked(b"appr", b"ove" + end) == (PROMPT.id, Verdict.APPROVED)
    for shown in ("client-1", "instance-1", "publication-1", "observe", f"{STATE_READ} (sensitive) Read parameters"):
        assert shown.encode() in terminal.text
    assert b"other\\u202e@1" in terminal.text
    assert "\u202e".encode() not in terminal.text
    terminal.shows(b"approved")


@promise("C18")
@pytest.mark.parametrize(
    "typed", [b"\n", b"y\n", b"yes\n", b"APPROVE\n", b" approve\n", b"approve it\n", b"\x04", b"x" * 200 + b"\n"]
)
def test_anything_else_refuses(terminal, typed):
    assert terminal.asked(typed).verdict is Verdict.DENIED


@promise("C18")
def test_an_answer_without_an_end_is_bounded(terminal, monkeypatch):
    pieces = [b"a" * 100] * 4
    monkeypatch.setattr(terminal_consent.os, "read", lambda fd, size: pieces.pop())
    monkeypatch.setattr(terminal_consent.select, "select", lambda reads, writes, errors, within: (reads, writes, []))
    assert terminal.consent.ask(PROMPT, deadline=within()).verdict is Verdict.DENIED
    assert len(pieces) == 1


@promise("C18", "C19")
def test_what_was_typed_before_the_question_answers_nothing(terminal):
    terminal.types(b"approve\napprove\n")
    terminal.shows(b"approve\r\napprove\r\n")  # the terminal has taken it in, and shows it
    assert terminal.asked(b"no\n").verdict is Verdict.DENIED


@promise("C19")
def test_nobody_who_decides_in_time_is_a_no(terminal):
    assert terminal.asked(b"approve", deadline=within(0.3)).verdict is Verdict.TIMED_OUT
    terminal.shows(b"timed_out")


@promise("C19")
def test_a_terminal_that_takes_nothing_is_not_waited_for_longer_than_there_is_time(terminal, monkeypatch):
    clock = ManualClock()

    def nothing_in_time(reads, writes, errors, within):
        clock.advance(int(within * SECOND))
        return [], [], []

    monkeypatch.setattr(terminal_consent.select, "select", nothing_in_time)
    answer = terminal.consent.ask(PROMPT, deadline=Deadline.after(clock, SECOND))
    assert answer.verdict is Verdict.TIMED_OUT


@promise("C19")
def test_where_nobody_waits_for_the_answer_any_more_the_question_is_given_up(terminal):
    came = []
    thread = threading.Thread(target=lambda: came.append(terminal.consent.ask(PROMPT, deadline=within())))
    thread.start()
    terminal.shows(b"> ")
    terminal.consent.close()
    thread.join(30)
    assert came == [(PROMPT.id, Verdict.UNAVAILABLE)]


@promise("C19")
@pytest.mark.parametrize("place", ["nowhere", "file", "background"])
def test_without_a_terminal_in_front_of_it_there_is_nobody_to_ask(place, terminal, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("approve\n")
    path = terminal.path if place == "background" else str(tmp_path / place)
    monkeypatch.setattr(terminal_consent.os, "tcgetpgrp", lambda fd: os.getpgrp() + 1)
    answer = TerminalConsent(PULP, terminal=path).ask(PROMPT, deadline=within())
    assert answer == (PROMPT.id, Verdict.UNAVAILABLE)


@promise("C19")
def test_the_process_in_front_of_its_terminal_asks(terminal, monkeypatch):
    monkeypatch.setattr(terminal_consent.os, "tcgetpgrp", lambda fd: os.getpgrp())
    assert terminal.asked(b"approve\n").verdict is Verdict.APPROVED


@promise("C20", "C21")
def test_what_stands_is_consented_to_without_a_question_and_never_what_only_a_person_decides_on(tmp_path):
    bench = CapabilityBench()
    nobody = TerminalConsent(PULP, standing=EVERYTHING, terminal=str(tmp_path / "none"))
    bench.restart(consent=nobody)
    assert bench.ask(STATE_READ).reason is None
    assert bench.manage("grant_request", instance_id="instance-1", profile="observe").status == "granted"
    assert bench.manage("grant_request", instance_id="instance-1", operation_id=EVALUATE).reason is (
        Reason.CONSENT_REQUIRED
    )


@promise("C21")
def test_what_stands_for_some_operations_covers_no_grant_of_more(tmp_path):
    some = TerminalConsent(PULP, standing=frozenset({STATE_READ}), terminal=str(tmp_path / "none"))
    assert some.standing(WANTED._replace(operations=(STATE_READ,)), deadline=within())
    assert not some.standing(WANTED, deadline=within())
