"""The broker's edge to a host: what it believes, what it writes, when it gives up, and that it never sends again."""

import base64
import hashlib
import os
import queue
import threading

import pytest
from capability_bench import at_once
from host_requests import OTHER, SESSION, Client, a_request, within, yes
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise
from scripted_host import INSTANCE, PLACES, ScriptedHost, said, welcome

from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Blob,
    Cancellation,
    Capability,
    Ended,
    Enrolled,
    Instance,
    Registered,
    Unavailable,
    Word,
)
from assisted_benchmark.capability.socket_host import SocketHost
from assisted_benchmark.capability.socket_host_messages import (
    MAX_ARTIFACT,
    MAX_CHUNK,
    MAX_EVENTS,
    MAX_LINE,
    Broken,
    judged,
    places_in,
)
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.workloads.plugin_host_place import Place

CLOCK = SystemClock()
ONE = Instance("instance-1", "registration-1", "publication-1", 1, (Capability("dev.pulp.state/read@1"),))
SHORT = 0.3  # seconds, where waiting in vain is the point
NONE = NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
NO_TIME = NotSent(Reason.DEADLINE_EXCEEDED, "no time was left to write it")
OURS = Offer(lowest=1, highest=1, mandatory=("receipts",))


def joined(scripted, session=SESSION):
    """A client that the script's `welcome` has enrolled."""
    client = Client(scripted.host, session, CLOCK)
    assert isinstance(client.enrolled, Enrolled)
    return client


def ask(scripted, *, number=1, seconds=10, gate=yes, progress=list.append, value=None, client="client-1"):
    """A request, and the progress that was told of it."""
    events = []
    claimed, envelope = a_request(ONE, value=value, number=number, client=client)
    reply = scripted.host.request(
        claimed,
        envelope,
        gate=gate,
        deadline=within(seconds, CLOCK),
        progress=lambda event: progress(events, event),
    )
    return reply, events


def uncertain(broken):
    unknown = broken in (Broken.LATE, Broken.CLOSED, Broken.CUT, Broken.ERROR)
    return (Uncertain, Reason.OUTCOME_UNKNOWN if unknown else Reason.RESULT_INVALID, broken.value)


def kind(reply):
    return (type(reply), reply.reason, reply.detail)


def script(*answers):
    """Enrol, and give these answers: each is called with the connection and what was asked."""

    def run(line):
        welcome(line)
        for answer in answers:
            asked = line.read()
            if asked is None:
                return
            answer(line, asked)
        line.read()

    return run


def completing(line, asked):
    line.answer(asked, said(asked))


@promise("C28")
def test_a_whole_answer_is_taken_with_its_progress_in_order_and_its_artifacts_whole():
    blob = bytes(range(256)) * 5000
    artifacts = [
        {"mime_type": "a/b", "byte_count": len(blob), "sha256": hashlib.sha256(blob).hexdigest()},
        {"mime_type": "c/d", "byte_count": 0, "sha256": hashlib.sha256(b"").hexdigest()},
    ]

    def answer(line, asked):
        line.tell("progress", request=asked["id"], event={"sequence": 1})
        for at in range(0, len(blob), MAX_CHUNK):
            piece = base64.b64encode(blob[at : at + MAX_CHUNK]).decode()
            line.tell("artifact", request=asked["id"], artifact=0, data=piece)
        line.tell("progress", request=asked["id"], event="anything")
        line.tell("artifact", request=asked["id"], artifact=1, data="")
        more = {"result": '{"a":1.0}', "code": "c", "explanation": "e", "artifacts": artifacts}
        line.answer(asked, said(asked, **more))

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        reply, events = ask(scripted)
        assert (reply.word, reply.result, reply.code, reply.explanation) == (Word.COMPLETED, b'{"a":1.0}', "c", "e")
        assert reply.artifacts == (Blob(blob, "a/b"), Blob(b"", "c/d"))
        assert reply.wrote.mono_ns <= reply.replied.mono_ns
        assert events == [{"sequence": 1}, "anything"]
        assert scripted.host.odd == ()


def test_what_is_written_is_the_claimed_bytes_in_their_envelope_and_nothing_else():
    seen = []

    def answer(line, asked):
        seen.append(asked)
        completing(line, asked)

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        claimed, envelope = a_request(ONE, value={"n": 1.5, "t": "\u2028é"})
        claimed = claimed._replace(permit=claimed.permit._replace(arguments='{"n":1.50,"t":"\u2028é"}'.encode()))
        scripted.host.request(claimed, envelope, gate=yes, deadline=within(10, CLOCK), progress=list.append)
        (asked,) = seen
        named = {
            "instance": "instance-1",
            "operation": "dev.pulp.state/read@1",
            "parameters": '{"n":1.50,"t":"\u2028é"}',
        }
        assert asked == {"jsonrpc": "2.0", "id": 2, "method": "request", "params": named | envelope._asdict()}


NOT_OF_A_REQUEST = {
    "another shape": [1],
    "a key too many": {"more": 1},
    "a code that is none": {"code": None},
    "no word": {"word": "perhaps"},
    "a result that is no text": {"result": {}},
    "a code that is too long": {"code": "c" * 129},
    "an explanation that is no text": {"explanation": None},
}


@promise("W9")
@pytest.mark.parametrize("change", NOT_OF_A_REQUEST.values(), ids=NOT_OF_A_REQUEST)
def test_an_answer_of_another_shape_is_not_believed(change):
    def answer(line, asked):
        line.answer(asked, change if type(change) is list else said(asked, **change))

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        assert kind(ask(scripted)[0]) == uncertain(Broken.NO_ANSWER)


def chunk(line, asked, **params):
    line.tell("artifact", **{"request": asked["id"], "artifact": 0, "data": "AAAA", **params})


ARTIFACT = {"mime_type": "a/b", "byte_count": 3, "sha256": hashlib.sha256(b"\0\0\0").hexdigest()}
UNFIT_ARTIFACTS = {
    "none came": ([], [ARTIFACT]),
    "one came that is not told of": ([{}], []),
    "what is told is no list": ([{}], {}),
    "what is told is no object": ([{}], ["x"]),
    "a key too many": ([{}], [ARTIFACT | {"more": 1}]),
    "another size": ([{}], [ARTIFACT | {"byte_count": 4}]),
    "another digest": ([{}], [ARTIFACT | {"sha256": "0" * 64}]),
    "no base64": ([{"data": "AAA"}, {}], [ARTIFACT]),
    "base64 with a stray character": ([{"data": "AA*AA=="}], [ARTIFACT]),
    "a number out of turn": ([{"artifact": 1}], [ARTIFACT]),
    "a number of before": ([{}, {"artifact": 1}, {}], [ARTIFACT, ARTIFACT]),
    "a negative number": ([{"artifact": -1}], [ARTIFACT]),
    "no number": ([{"artifact": True}], [ARTIFACT]),
    "a chunk too large": ([{"data": base64.b64encode(bytes(MAX_CHUNK + 1)).decode()}], [ARTIFACT]),
    "an artifact too large": ([{"data": base64.b64encode(bytes(MAX_CHUNK)).decode()}] * 17, [ARTIFACT]),
    "too many": ([{"artifact": number} for number in range(65)], [ARTIFACT] * 65),
}


@promise("C28")
@pytest.mark.parametrize(("chunks", "artifacts"), UNFIT_ARTIFACTS.values(), ids=UNFIT_ARTIFACTS)
def test_artifacts_that_are_not_those_that_are_told_of_are_not_believed(chunks, artifacts):
    def answer(line, asked):
        for each in chunks:
            chunk(line, asked, **each)
        line.answer(asked, said(asked, artifacts=artifacts))

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        assert kind(ask(scripted)[0]) == uncertain(Broken.ARTIFACTS)


def test_of_artifacts_only_so_much_is_kept_however_much_is_sent():
    piece = base64.b64encode(bytes(MAX_CHUNK)).decode()

    def answer(line, asked):
        for number in range(70):
            chunk(line, asked, artifact=number // 16, data=piece)
        line.answer(asked, said(asked))

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        assert kind(ask(scripted)[0]) == uncertain(Broken.ARTIFACTS)
        assert len(scripted.host.odd) > 0


@promise("W6", "W7")
def test_progress_is_bounded_does_not_stretch_the_deadline_and_ends_with_the_answer():
    def answer(line, asked):
        for number in range(MAX_EVENTS + 5):
            line.tell("progress", request=asked["id"], event=number)
        completing(line, asked)
        line.tell("progress", request=asked["id"], event="late")

    def dripping(line, asked):
        while True:  # until the client leaves
            line.tell("progress", request=asked["id"], event="still at it")

    with ScriptedHost(script(answer, dripping)) as scripted:
        joined(scripted)
        reply, events = ask(scripted)
        assert (reply.word, events) == (Word.COMPLETED, list(range(MAX_EVENTS)))
        reply, events = ask(scripted, number=2, seconds=SHORT)
        assert (kind(reply), len(events) <= MAX_EVENTS) == (uncertain(Broken.LATE), True)


@promise("W4")
def test_a_second_answer_and_answers_to_nobody_are_noted_and_ignored():
    def answer(line, asked):
        other = {**asked, "id": 77}
        text = {**asked, "id": str(asked["id"])}
        for each in (other, text):
            line.answer(each, said(asked, word="failed"))
        line.answer(asked, said(asked))
        line.answer(asked, said(asked, word="failed"))
        line.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}})
        line.tell("progress", request=True, event="x")
        line.tell("progress", request=asked["id"], event="x")
        line.tell("progress", request=asked["id"])
        line.tell("artifact", request=asked["id"], artifact=0, data=7)
        line.say({"jsonrpc": "2.0", "id": 5, "method": "enrol", "params": {}})

    with ScriptedHost(script(answer, completing)) as scripted:
        joined(scripted)
        assert ask(scripted)[0].word is Word.COMPLETED
        assert ask(scripted, number=2)[0].word is Word.COMPLETED
        assert scripted.host.odd == (
            "a message that fits nothing",
            "a message that fits nothing",
            "a message that fits nothing",
            "a message that fits nothing",
            "news of a request that does not wait, or too much of it",
            "news of a request that does not wait, or too much of it",
            "a message that fits nothing",
            "a message that fits nothing",
            "a message that fits nothing",
        )


def test_what_is_odd_is_kept_within_a_bound():
    def answer(line, asked):
        line.say(*[b"\xff\n"] * 300)
        completing(line, asked)

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        assert ask(scripted)[0].word is Word.COMPLETED
        assert len(scripted.host.odd) == 100
        assert scripted.host.odd[0].startswith("no message: ")


ODD_LINES = [
    b"[]",
    b"{}",
    b"null",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
    b"\xef\xbb\xbf{}",
    b'{"a":' * 80 + b"1" + b"}" * 80,
    b'{"jsonrpc":"2.0","method":"notifications/registered","params":[]}',
]


@promise("W3")
def test_whatever_lines_a_host_sends_the_answer_after_them_is_still_taken():
    sent = queue.Queue()

    def run(line):
        welcome(line)
        while (asked := line.read()) is not None:
            line.say(sent.get() + b"\n")
            line.answer(asked, said(asked))

    with ScriptedHost(run) as scripted:
        joined(scripted)
        numbers = iter(range(1, 1 << 20))
        texts = st.sampled_from(ODD_LINES)

        @settings(max_examples=60, deadline=None)
        @given(st.one_of(texts, st.binary(max_size=60).filter(lambda data: b"\n" not in data)))
        def check(data):
            sent.put(data)
            reply, _ = ask(scripted, number=next(numbers))
            assert reply.word is Word.COMPLETED

        check()


@promise("W3")
def test_an_answer_that_is_no_message_is_known_to_be_ours_and_not_believed():
    def twice(line, asked):
        line.say(b'{"jsonrpc":"2.0","id":%d,"result":{},"result":{}}\n' % asked["id"])

    with ScriptedHost(script(twice, twice)) as scripted:
        client = joined(scripted)
        assert kind(ask(scripted)[0]) == uncertain(Broken.NO_MESSAGE)
        assert client.instances() == Unavailable(Reason.MALFORMED_FRAME, Broken.NO_MESSAGE.value)


@promise("W3")
def test_a_line_beyond_the_bound_is_skipped_and_the_next_is_read():
    def answer(line, asked):
        line.say(b"x" * (MAX_LINE + 1) + b"\n")
        completing(line, asked)

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        assert ask(scripted)[0].word is Word.COMPLETED


SHAPES = {
    "no object": [],
    "nothing": {},
    "a key too many": {"session": "s", "instances": [], "offer": {}},
}
OFFERED = {"lowest": 1, "highest": 1, "mandatory": [], "optional": []}


def an_instance(**change):
    return {"instances": [INSTANCE | change]}


def a_capability(**change):
    return an_instance(capabilities=[INSTANCE["capabilities"][0] | change])


CAPABILITIES = INSTANCE["capabilities"]


def many_instances(count):
    return [INSTANCE | {"id": f"instance-{number}"} for number in range(count)]


def many_capabilities(count):
    return [CAPABILITIES[0] | {"operation": f"dev.pulp.logs/read-{number}@1"} for number in range(count)]


UNFIT = {
    "connect": [*SHAPES.values(), {"session": ""}, {"session": "s" * 129}, {"session": 7}, {"session": None}],
    "inventory": [
        *SHAPES.values(),
        *({"instances": each} for each in ({}, [7], [INSTANCE] * 257, many_instances(257))),
        *(an_instance(**each) for each in ({"more": 1}, {"id": ""}, {"registration": 7}, {"publication": "p" * 129})),
        *(an_instance(state_generation=each) for each in (-1, True, 1.0, "1", None)),
        *(an_instance(capabilities=each) for each in ({}, [7], CAPABILITIES * 2, many_capabilities(65))),
        *(a_capability(**each) for each in ({"built": 1}, {"operation": ""}, {"more": True})),
    ],
    "negotiate": [
        *SHAPES.values(),
        *({"offer": OFFERED | {key: value}} for key, value in (("more", 1), ("lowest", True), ("highest", "1"))),
        *({"offer": OFFERED | {key: value}} for key, value in (("optional", [7]), ("mandatory", "x"))),
    ],
}


def test_an_inventory_of_as_much_as_is_allowed_is_believed():
    answer = {"instances": [*many_instances(255), INSTANCE | {"capabilities": many_capabilities(64)}]}
    with ScriptedHost(script(lambda line, asked: line.answer(asked, answer))) as scripted:
        found = joined(scripted).instances()
    assert len(found) == 256
    assert len(found[-1].capabilities) == 64


@promise("W9")
@pytest.mark.parametrize(("step", "answer"), [(step, each) for step in UNFIT for each in UNFIT[step]])
def test_an_answer_to_a_step_that_has_not_its_shape_is_not_believed(step, answer):
    def enrolled(line):
        line.answer(line.read(), answer)
        line.read()

    with ScriptedHost(
        enrolled if step == "connect" else script(lambda line, asked: line.answer(asked, answer))
    ) as scripted:
        if step == "connect":
            found = scripted.host.connect(SESSION, deadline=within(10, CLOCK))
        elif step == "inventory":
            found = joined(scripted).instances()
        else:
            client = joined(scripted)
            found = scripted.host.negotiate(client.enrolled, ONE, OURS, deadline=within(10, CLOCK))
        assert found == Unavailable(Reason.MALFORMED_FRAME, Broken.NO_ANSWER.value)


def test_what_has_its_shape_is_taken_and_what_was_asked_was_written():
    seen = []

    def answering(result):
        def answer(line, asked):
            seen.append((asked["method"], asked["params"]))
            line.tell("progress", request=asked["id"], event="nobody asked for it")
            line.answer(asked, result)

        return answer

    with ScriptedHost(script(answering({"instances": [INSTANCE]}), answering({"offer": OFFERED}))) as scripted:
        client = joined(scripted)
        assert client.instances() == (ONE,)
        offer = scripted.host.negotiate(client.enrolled, ONE, OURS, deadline=within(10, CLOCK))
        assert offer == Offer(lowest=1, highest=1)
        ours = {"lowest": 1, "highest": 1, "mandatory": ["receipts"], "optional": []}
        about = {"session": "s-1", "instance": "instance-1", "publication": "publication-1"}
        assert seen == [("inventory", {"session": "s-1"}), ("negotiate", about | {"offer": ours})]


ERRORS = {
    "ended": ({"ended": True}, Unavailable(Reason.SESSION_ENDED, Broken.ERROR.value, ended=True)),
    "not ended": ({"ended": 1}, Unavailable(Reason.SERVER_UNAVAILABLE, Broken.ERROR.value)),
    "no data": (None, Unavailable(Reason.SERVER_UNAVAILABLE, Broken.ERROR.value)),
}


@promise("C12")
@pytest.mark.parametrize(("data", "expected"), ERRORS.values(), ids=ERRORS)
def test_an_error_says_whether_the_session_is_over_and_of_a_request_it_says_nothing(data, expected):
    def answer(line, asked):
        error = {"code": -32000, "message": "no"} | ({} if data is None else {"data": data})
        line.say({"jsonrpc": "2.0", "id": asked["id"], "error": error})

    with ScriptedHost(script(answer, answer)) as scripted:
        client = joined(scripted)
        assert client.instances() == expected
        assert kind(ask(scripted)[0]) == uncertain(Broken.ERROR)


@promise("C25")
def test_where_instances_are_is_known_without_asking_and_before_the_answer_that_it_belongs_to():
    def moving(line, asked):
        line.tell("registered", instances=[["instance-1", "registration-1", "publication-2"]])
        completing(line, asked)

    def tearing(line, asked):
        line.tell("registered", instances=[])
        completing(line, asked)

    def doubling(line, asked):
        line.tell("registered", instances=[*PLACES, ["instance-1", "registration-2", "publication-3"]])
        completing(line, asked)

    def raving(line, asked):
        line.tell("registered", instances=[["instance-1", "registration-1"]])
        completing(line, asked)

    def leaving(line, asked):
        line.tell("registered", instances=PLACES)
        completing(line, asked)
        line.close()

    with ScriptedHost(script(moving, tearing, doubling, leaving, raving)) as scripted:
        assert scripted.host.registered("instance-1") is None
        joined(scripted)
        found = [scripted.host.registered("instance-1")]
        for number in range(1, 4):
            ask(scripted, number=number)
            found.append(scripted.host.registered("instance-1"))
        assert found == [
            Registered("registration-1", "publication-1"),
            Registered("registration-1", "publication-2"),
            None,
            None,
        ]
        assert scripted.host.registered("instance-2") is None


@pytest.mark.parametrize("places", [[["a", "b"]], [["a", "b", 7]], [["", "b", "c"]], "x", [["a", "b", "c"]] * 257])
def test_a_list_of_instances_that_is_none_leaves_nothing_known(places):
    def answer(line, asked):
        line.tell("registered", instances=places)
        completing(line, asked)

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        ask(scripted)
        assert (scripted.host.registered("instance-1"), scripted.host.odd) == (
            None,
            ("a list of instances that is none",),
        )


@promise("C25")
def test_a_lost_connection_is_uncertain_for_what_was_written_and_nothing_is_sent_again():
    asked = []

    def drop(line):
        welcome(line)
        asked.append(line.read())

    with ScriptedHost(drop, script(completing)) as scripted:
        client = joined(scripted)
        assert kind(ask(scripted)[0]) == uncertain(Broken.CLOSED)
        assert ask(scripted, number=2) == (NONE, [])
        assert scripted.host.registered("instance-1") is None
        gone = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands", ended=True)
        assert client.instances() == gone
        assert scripted.host.negotiate(client.enrolled, ONE, OURS, deadline=within(10, CLOCK)) == gone
        named = Cancellation("request-1", "instance-1", "publication-1", "client-1", "cancelled")
        assert scripted.host.cancel(client.enrolled, named, deadline=within(10, CLOCK)) == gone
        again = joined(scripted)
        # The host gives its session the same name; it is another session all the same.
        assert (client.enrolled.id, again.enrolled.id) == ("1.s-1", "2.s-1")
        assert client.instances() == gone
        assert ask(scripted, number=3)[0].word is Word.COMPLETED
        assert len(asked) == 1


def test_a_host_that_leaves_with_our_bytes_unread_is_a_lost_connection():
    def leave(line):
        welcome(line)
        line.socket.recv(1)

    with ScriptedHost(leave) as scripted:
        joined(scripted)
        assert kind(ask(scripted)[0]) == uncertain(Broken.CLOSED)


def test_a_host_that_leaves_before_it_enrols_is_told_as_lost():
    with ScriptedHost(lambda line: line.read()) as scripted:
        found = scripted.host.connect(SESSION, deadline=within(10, CLOCK))
        assert found == Unavailable(Reason.SERVER_UNAVAILABLE, Broken.CLOSED.value, ended=True)


@promise("C10", "W7")
def test_without_an_answer_each_step_takes_the_time_it_has_and_no_more():
    def silent(line):
        welcome(line)
        while line.read() is not None:
            pass

    with ScriptedHost(silent) as scripted:
        client = joined(scripted)
        late = Unavailable(Reason.DEADLINE_EXCEEDED, Broken.LATE.value)
        assert client.instances(SHORT) == late
        assert kind(ask(scripted, seconds=SHORT)[0]) == uncertain(Broken.LATE)
        assert ask(scripted, number=2, seconds=0) == (NO_TIME, [])
        out = Unavailable(Reason.DEADLINE_EXCEEDED, NO_TIME.detail)
        assert client.instances(0) == out
        named = Cancellation("request-1", "instance-1", "publication-1", "client-1", "cancelled")
        assert scripted.host.cancel(client.enrolled, named, deadline=within(0, CLOCK)) == out


@promise("W4")
def test_an_answer_after_its_time_belongs_to_nobody_and_the_next_gets_its_own():
    def late(line, asked):
        following = line.read()
        line.answer(asked, said(asked, result='"late"'))
        line.answer(following, said(following, result='"mine"'))

    with ScriptedHost(script(late)) as scripted:
        joined(scripted)
        assert kind(ask(scripted, seconds=SHORT)[0]) == uncertain(Broken.LATE)
        assert ask(scripted, number=2)[0].result == b'"mine"'


@promise("W4")
def test_many_requests_at_once_each_get_their_own_answer_under_an_id_of_their_own():
    count = 16
    seen = []

    def run(line):
        welcome(line)
        asked = [line.read() for _ in range(count)]
        for each in reversed(asked):
            line.tell("progress", request=each["id"], event=each["params"]["request_id"])
        for each in asked[::2] + asked[1::2]:
            line.answer(each, said(each, result=f'"{each["params"]["request_id"]}"'))
        seen.extend(asked)
        line.read()

    with ScriptedHost(run) as scripted:
        joined(scripted)
        came = at_once(*[lambda number=number: ask(scripted, number=number) for number in range(count)])
        expected = [f"request-{number}" for number in range(count)]
        assert [reply.result.decode() for reply, _ in came] == [f'"{each}"' for each in expected]
        assert [events for _, events in came] == [[each] for each in expected]
        assert len({each["id"] for each in seen}) == count


@promise("W4")
def test_the_answer_to_one_request_under_the_id_of_another_is_not_believed():
    def cross(line, asked):
        following = line.read()
        line.answer(asked, said(following))
        line.answer(following, said(asked))

    with ScriptedHost(script(cross)) as scripted:
        joined(scripted)
        came = at_once(*[lambda number=number: ask(scripted, number=number)[0] for number in (1, 2)])
        assert [kind(each) for each in came] == [uncertain(Broken.OTHER)] * 2


@promise("C26")
def test_what_is_cancelled_before_its_first_byte_is_not_written_whoever_cancels():
    seen = []

    def run(line):
        welcome(line)
        while (asked := line.read()) is not None:
            seen.append((asked["method"], asked["params"]["client"]))
            if "id" in asked:
                completing(line, asked)

    with ScriptedHost(run) as scripted:
        client = joined(scripted)
        named = Cancellation("request-1", "instance-1", "publication-1", "client-1", "cancelled")

        def cancel():
            assert scripted.host.cancel(client.enrolled, named, deadline=within(10, CLOCK)) is None
            return True

        def cancel_elsewhere():
            return at_once(cancel) == [True]

        stopped = NotSent(Reason.CANCELLED, "it was cancelled before it was written")
        assert ask(scripted, gate=cancel) == (stopped, [])
        assert ask(scripted, gate=cancel_elsewhere) == (stopped, [])
        assert seen == []
        # Another client's request of the same id is another request.
        assert type(ask(scripted, client="client-2", gate=cancel)[0]) is Ended
        assert seen == [("notifications/cancel", "client-1"), ("request", "client-2")]


@promise("C26")
def test_a_cancellation_is_the_canonical_one_under_the_hosts_own_name_of_the_session():
    seen = []

    def answer(line, asked):
        seen.append(line.read())
        line.answer(asked, said(asked, word="cancelled"))

    with ScriptedHost(script(answer)) as scripted:
        client = joined(scripted)
        named = Cancellation("request-1", "instance-1", "publication-1", "client-1", "revoked")

        def cancel():
            scripted.lines.get()
            return scripted.host.cancel(client.enrolled, named, deadline=within(10, CLOCK))

        written = threading.Event()
        claimed, envelope = a_request(ONE)

        def request():
            def gate():
                written.set()
                return True

            return scripted.host.request(claimed, envelope, gate=gate, deadline=within(10, CLOCK), progress=list.append)

        def cancel_once_written():
            written.wait(10)
            # The brink may not be crossed yet; then nothing is told to the host.
            return cancel()

        reply, sent = at_once(request, cancel_once_written)
        assert sent is None
        if isinstance(reply, NotSent):
            assert reply.reason is Reason.CANCELLED
        else:
            assert reply.word is Word.CANCELLED
            told = {"session": "s-1", **named._asdict()}
            assert seen == [{"jsonrpc": "2.0", "method": "notifications/cancel", "params": told}]


class Stuck(ScriptedHost):
    """A host that reads nothing more once it has enrolled a client."""

    def __init__(self, *scripts):
        self.done = threading.Event()
        super().__init__(self._hold, *scripts)

    def _hold(self, line):
        welcome(line)
        self.done.wait(10)

    def __exit__(self, *exc):
        self.done.set()
        super().__exit__(*exc)


BIG = {"text": "x" * (MAX_LINE - 4096)}  # more than any socket holds, and less than a line may have


@promise("C25")
def test_a_request_that_gets_out_in_part_is_uncertain_and_ends_the_connection():
    with Stuck() as scripted:
        client = joined(scripted)
        assert kind(ask(scripted, value=BIG, seconds=SHORT)[0]) == uncertain(Broken.CUT)
        assert ask(scripted, number=2) == (NONE, [])
        assert client.instances() == Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands", ended=True)


@promise("C10", "W7")
def test_who_waits_behind_a_frame_that_does_not_get_out_runs_out_of_time_without_a_byte():
    with Stuck() as scripted:
        client = joined(scripted)
        named = Cancellation("request-9", "instance-1", "publication-1", "client-1", "cancelled")
        entered = threading.Event()
        asked = []

        def long():
            return kind(ask(scripted, value=BIG, seconds=2, gate=lambda: entered.set() or True)[0])

        def behind():
            entered.wait(10)
            reply, _ = ask(scripted, number=2, seconds=SHORT, gate=lambda: asked.append("gate") or True)
            sent = scripted.host.cancel(client.enrolled, named, deadline=within(SHORT, CLOCK))
            return reply, sent

        first, (second, sent) = at_once(long, behind)
        assert first == uncertain(Broken.CUT)
        assert (second, asked) == (NO_TIME, [])
        assert sent == Unavailable(Reason.DEADLINE_EXCEEDED, NO_TIME.detail)


def test_a_step_or_a_cancellation_that_gets_out_in_part_ends_the_connection_as_well():
    for act in ("cancel", "inventory"):
        with Stuck() as scripted:
            client = joined(scripted)
            long = Enrolled(client.enrolled.id + "s" * (MAX_LINE - 4096), "", "")
            if act == "cancel":
                named = Cancellation("r", "i", "p", "c", "cancelled")
                found = scripted.host.cancel(long, named, deadline=within(SHORT, CLOCK))
            else:
                found = scripted.host.inventory(long, deadline=within(SHORT, CLOCK))
            assert found == Unavailable(Reason.SERVER_UNAVAILABLE, Broken.CUT.value, ended=True)


@promise("C25")
def test_a_connection_that_is_lost_while_a_frame_goes_out_is_uncertain():
    def leave(line):
        welcome(line)
        line.socket.recv(1)

    with ScriptedHost(leave) as scripted:
        joined(scripted)
        assert kind(ask(scripted, value=BIG)[0]) == uncertain(Broken.CUT)


class Reluctant:
    """A socket whose first attempts to send go wrong."""

    def __init__(self, inner, *errors):
        self._inner = inner
        self._errors = list(errors)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def send(self, view):
        if self._errors:
            raise self._errors.pop(0)
        return self._inner.send(view)


def test_a_socket_that_takes_nothing_after_all_is_asked_again_and_so_is_the_gate():
    with ScriptedHost(script(completing)) as scripted:
        joined(scripted)
        connection, asked = scripted.host._connection, []
        connection._socket = Reluctant(connection._socket, BlockingIOError())
        reply, _ = ask(scripted, gate=lambda: asked.append("gate") or True)
        assert (reply.word, asked) == (Word.COMPLETED, ["gate", "gate"])


def test_a_socket_that_breaks_before_its_first_byte_has_sent_nothing_and_is_given_up():
    with ScriptedHost(script(completing)) as scripted:
        joined(scripted)
        connection = scripted.host._connection
        connection._socket = Reluctant(connection._socket, BrokenPipeError())
        assert ask(scripted)[0] == NONE
        connection._thread.join()
        assert ask(scripted, number=2) == (NONE, [])


def test_a_large_request_gets_out_whole_in_as_many_pieces_as_it_takes():
    seen = []

    def answer(line, asked):
        seen.append(asked["params"]["parameters"])
        completing(line, asked)

    with ScriptedHost(script(answer)) as scripted:
        joined(scripted)
        assert ask(scripted, value=BIG)[0].word is Word.COMPLETED
        assert [len(each) for each in seen] == [len(BIG["text"]) + len('{"text": ""}')]


def test_artifacts_have_bounds_wherever_they_come_from():
    now = CLOCK.now()
    one = bytes(MAX_ARTIFACT)

    def judge(*came):
        sha256 = hashlib.sha256(one).hexdigest()
        artifacts = [{"mime_type": "a/b", "byte_count": len(each), "sha256": sha256} for each in came]
        answer = {"receipt_id": "r", "word": "completed", "result": "", "code": "", "explanation": ""}
        return judged(answer | {"artifacts": artifacts}, came, "r", now, now)

    assert judge(one).artifacts == (Blob(one, "a/b"),)
    assert kind(judge(one + b"0")) == kind(judge(*[one] * 5)) == uncertain(Broken.ARTIFACTS)


def test_a_request_larger_than_a_host_takes_is_not_written():
    with ScriptedHost(script(completing)) as scripted:
        joined(scripted)
        reply = ask(scripted, value={"text": "x" * MAX_LINE})
        assert reply == (NotSent(Reason.TOO_LARGE, "the request is larger than a host takes"), [])
        assert ask(scripted, number=2)[0].word is Word.COMPLETED


class Strike(BaseException):
    """What an experiment lets strike."""


def strike(*_):
    raise Strike


def test_what_strikes_in_a_gate_or_in_a_listener_goes_to_the_caller_and_leaves_the_connection_sound():
    def reporting(line, asked):
        line.tell("progress", request=asked["id"], event=1)
        completing(line, asked)

    with ScriptedHost(script(reporting, completing)) as scripted:
        joined(scripted)
        with pytest.raises(Strike):
            ask(scripted, gate=strike)
        with pytest.raises(Strike):
            ask(scripted, number=2, progress=strike)
        assert ask(scripted, number=3)[0].word is Word.COMPLETED


def test_a_gate_that_says_no_writes_nothing():
    with ScriptedHost(script(completing)) as scripted:
        joined(scripted)
        closed = NotSent(Reason.EXPIRED, "the gate closed before the request was written")
        assert ask(scripted, gate=lambda: False) == (closed, [])
        assert ask(scripted, number=2)[0].word is Word.COMPLETED


def test_an_envelope_of_another_request_than_the_claimed_one_is_not_written():
    with ScriptedHost(script(completing)) as scripted:
        joined(scripted)
        claimed, _ = a_request(ONE)
        _, envelope = a_request(ONE, number=2)
        asked = []
        reply = scripted.host.request(
            claimed, envelope, gate=lambda: asked.append(1), deadline=within(10, CLOCK), progress=list.append
        )
        assert (reply.reason, asked) == (Reason.BINDING_MISMATCH, [])


def test_many_clients_share_one_connection_even_if_they_come_at_once():
    def run(line):
        line.tell("registered", instances=PLACES)
        for number in range(8):
            line.answer(line.read(), {"session": f"s-{number}"})
        line.read()

    with ScriptedHost(run) as scripted:
        came = at_once(*[lambda: scripted.host.connect(OTHER, deadline=within(10, CLOCK)) for _ in range(8)])
        assert {each.id for each in came} == {f"1.s-{number}" for number in range(8)}
        assert {(each.client, each.peer) for each in came} == {("client-2", "peer-2")}


def test_a_client_that_cannot_connect_in_time_does_not_wait_for_one_that_can():
    with ScriptedHost(script()) as scripted:
        late = Unavailable(Reason.DEADLINE_EXCEEDED, Broken.LATE.value)
        assert scripted.host.connect(SESSION, deadline=within(0, CLOCK)) == late
        with scripted.host._opening:
            assert scripted.host.connect(SESSION, deadline=within(0, CLOCK)) == late
        joined(scripted)


UNCONNECTED = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands")


def test_where_nobody_listens_no_connection_stands(tmp_path):
    os.chmod(tmp_path, 0o700)
    host = SocketHost(tmp_path / "socket", CLOCK)
    assert host.connect(SESSION, deadline=within(10, CLOCK)) == UNCONNECTED
    host = SocketHost(tmp_path / "nowhere" / "socket", CLOCK)
    assert host.connect(SESSION, deadline=within(10, CLOCK)) == UNCONNECTED
    assert (ask_of(host), host.odd, host.registered("instance-1")) == (NONE, (), None)
    host.close()


def ask_of(host):
    claimed, envelope = a_request(ONE)
    return host.request(claimed, envelope, gate=yes, deadline=within(10, CLOCK), progress=list.append)


def test_a_folder_that_others_can_reach_is_not_connected_to():
    place = Place()
    folder = place.path.parent
    try:
        for mode in (0o701, 0o710, 0o770):
            os.chmod(folder, mode)
            assert SocketHost(place.path, CLOCK).connect(SESSION, deadline=within(10, CLOCK)) == UNCONNECTED
        os.chmod(folder, 0o700)
        link = folder / "link"
        link.symlink_to(folder)
        assert SocketHost(link / "socket", CLOCK).connect(SESSION, deadline=within(10, CLOCK)) == UNCONNECTED
    finally:
        place.close()


@promise("W10a")
def test_closing_tells_what_waits_and_leaves_no_thread():
    before = threading.active_count()

    def silent(line):
        welcome(line)
        while line.read() is not None:
            pass

    with ScriptedHost(silent) as scripted:
        joined(scripted)
        gone = threading.Event()

        def gate():
            gone.set()
            return True

        def close():
            gone.wait(10)
            scripted.host.close()

        reply, _ = at_once(lambda: ask(scripted, gate=gate)[0], close)
        assert reply == NONE or kind(reply) == uncertain(Broken.CLOSED)
        scripted.host.close()
        assert ask(scripted, number=2) == (NONE, [])
    assert threading.active_count() == before


def test_a_host_that_does_not_stop_talking_does_not_keep_who_asks_where_an_instance_is():
    with ScriptedHost(script()) as scripted:
        joined(scripted)
        connection = scripted.host._connection
        pieces = []
        real, connection._take_in = connection._take_in, lambda: pieces.append(1) or True
        assert scripted.host.registered("instance-1") == Registered("registration-1", "publication-1")
        connection._take_in = real
        assert len(pieces) >= 256


@promise("W3")
@pytest.mark.parametrize(
    "told",
    [{"instances": [["i", "r"]]}, {"instances": [["i", "r", 7]]}, {"instances": ["irp"]}, {"instances": {}}, {}, []],
)
def test_places_of_another_shape_are_none(told):
    assert places_in({"instances": [["i", "r", "p"]]}) == (("i", Registered("r", "p")),)
    assert places_in(told) is None
