"""What the official conformance suite wants a server to have, behind the gateway's own HTTP face.

Prints its URL, and ends with standard input. The suite's client brings no bearer, so that here one is added to every
request on its way in; nothing else is done for it. What the gateway has no word for (sampling and roots in the
handshake era, log messages, subscriptions to resources) is not put on: the suite fails there, as is expected.
"""

import base64
import hmac
import json
import re
import sys
import threading

from http_peers import BEARER, with_bearer

from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.http_server import HttpServer
from assisted_benchmark.gateway.principals import EachItsOwn
from assisted_benchmark.gateway.tools import ToolRegistration
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SECOND, SystemClock
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Silence
from assisted_benchmark.wire.server_side import UNCACHED, Also, ToolProblem

KEY = SystemChance().token(32)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
).decode()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SAID = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def text(words):
    return {"type": "text", "text": words}


def embedded(uri, mime_type, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


def says(*content):
    return lambda call: {"content": list(content)}


def form(message, schema):
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words, most):
    message = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}}


ROOTS = {"method": "roots/list", "params": {}}


def arguments(call):
    return json.loads(call.arguments)


def sealed(state):
    return f"{state}.{hmac.digest(KEY, state.encode(), 'sha256').hex()}"


def opened(given):
    """The state that we sealed; what anybody else made is refused."""
    state = given.rpartition(".")[0]
    if not hmac.compare_digest(given, sealed(state)):
        raise ToolProblem(-32602, "the state is none of ours")
    return state


# -- what asks: with a question in the handshake era, with a result in the other


def asks(message, schema, told):
    """A tool that asks a person once."""

    def handle(call):
        question = message or arguments(call)["message"]
        if call.era is Era.STATELESS:
            return needs({"question": form(question, schema)}, lambda answers: told(answers["question"]))(call)
        heard = call.ask(question, schema, 10 * SECOND)
        if isinstance(heard, Silence):
            raise ToolProblem(-32603, "no answer came")
        return {"content": [text(told(heard))]}

    return handle


def answered(call, wanted):
    """What the client brought along, if every answer that is wanted is there and could be one."""
    given = call._call.params.get("inputResponses", {})
    sound = all(isinstance(given.get(key), dict) and fits(each["method"], given[key]) for key, each in wanted.items())
    return given if sound else None


def fits(method, answer):
    if method == "elicitation/create":
        return answer.get("action") in ("accept", "decline", "cancel") and isinstance(answer.get("content", {}), dict)
    return isinstance(answer.get("roots" if method == "roots/list" else "content"), list | dict)


def needs(wanted, told, state=None):
    """A tool whose result asks until every answer is there; `state` goes to the client and back, sealed."""

    def handle(call):
        given = answered(call, wanted)
        carried = call._call.params.get("requestState")
        if carried is not None and opened(carried) != state:
            raise ToolProblem(-32602, "the state is of another call")
        if given is None or (state and carried is None):
            more = {"requestState": sealed(state)} if state else {}
            return {"resultType": "input_required", "inputRequests": wanted, **more}
        return {"content": [text(told(given))]}

    return handle


def in_two_rounds(call):
    carried = call._call.params.get("requestState")
    round_ = "" if carried is None else opened(carried)
    first, second = {"step1": form("Step 1: What is your name?", NAMED)}, {"step2": form("Step 2: Which color?", NAMED)}
    if round_ == "two" and answered(call, second):
        return {"content": [text("done in two rounds")]}
    following = ("two", second) if round_ == "two" or (round_ == "one" and answered(call, first)) else ("one", first)
    return {"resultType": "input_required", "inputRequests": following[1], "requestState": sealed(following[0])}


def by_capability(call):
    every = {"elicitation": form("Name?", NAMED), "sampling": sampling("Name?", 10), "roots": ROOTS}
    wanted = {key: each for key, each in every.items() if key in call._call.capabilities}
    return {"resultType": "input_required", "inputRequests": wanted}


def that_needs_sampling(call):
    if "sampling" not in call._call.capabilities:
        raise ToolProblem(-32021, "the client does not sample", {"requiredCapabilities": {"sampling": {}}})
    return {"content": [text("it samples")]}


def failing(call):
    return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}


def in_steps(call):
    for step in (0, 50, 100):
        call.progress(step, 100)
    return {"content": [text("done")]}


def changing(call):
    FACE.changed = not FACE.changed
    return {"content": [text("there are other tools now")]}


# -- schemas of questions

PERSON = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"{word} Option"} for number, word in enumerate(("First", "Second"), 1)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}

ELICITATION = {"user_name": form("What is your name?", NAMED)}
SAMPLING = {"capital_question": sampling("What is the capital of France?", 100)}
EVERYTHING = ELICITATION | {"greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def ended(heard):
    return f"Elicitation completed: action={heard['action']}, content={json.dumps(heard.get('content', {}))}"


TOOLS = {
    "test_simple_text": says(text("This is a simple text response for testing.")),
    "test_image_content": says(IMAGE),
    "test_audio_content": says({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": says(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": says(
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": failing,
    "test_tool_with_progress": in_steps,
    "test_elicitation": asks("", PERSON, lambda heard: f"User response: {json.dumps(heard)}"),
    "test_elicitation_sep1034_defaults": asks("Who are you?", DEFAULTS, ended),
    "test_elicitation_sep1330_enums": asks("Which ones?", ENUMS, ended),
    "test_streaming_elicitation": asks("Who are you?", NAMED, ended),
    "test_logging_tool": says(text("nothing is logged")),
    "test_missing_capability": that_needs_sampling,
    "test_trigger_tool_change": changing,
    "json_schema_2020_12_tool": says(text("ok")),
    "test_mirrored": says(text("ok")),
    "test_input_required_result_elicitation": needs(
        ELICITATION, lambda given: f"Hello, {given['user_name'].get('content', {}).get('name')}!"
    ),
    "test_input_required_result_sampling": needs(SAMPLING, lambda given: given["capital_question"]["content"]["text"]),
    "test_input_required_result_list_roots": needs(
        {"client_roots": ROOTS}, lambda given: json.dumps(given["client_roots"]["roots"])
    ),
    "test_input_required_result_request_state": needs(
        {"confirm": form("Please confirm", SAID)}, lambda given: "state-ok", "confirm"
    ),
    "test_input_required_result_tampered_state": needs(
        {"confirm": form("Please confirm", SAID)}, lambda given: "state-ok", "untouched"
    ),
    "test_input_required_result_multiple_inputs": needs(EVERYTHING, lambda given: "everything is there", "several"),
    "test_input_required_result_multi_round": in_two_rounds,
    "test_input_required_result_capabilities": by_capability,
}
INPUTS = {
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "json_schema_2020_12_tool": RICH,
    "test_mirrored": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}

RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}


def listed_resources(call):
    resources = [
        {"uri": uri, "name": uri[7:], "description": "A resource of the suite", "mimeType": each["mimeType"]}
        for uri, each in RESOURCES.items()
    ]
    return {"resources": resources, **UNCACHED}


def templates(call):
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [template], **UNCACHED}


def read(call):
    uri = arguments(call)["uri"]
    found = RESOURCES.get(uri)
    templated = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if templated:
        data = {"id": templated[1], "templateTest": True, "data": f"Data for ID: {templated[1]}"}
        found = {"mimeType": "application/json", "text": json.dumps(data)}
    if found is None:
        raise ToolProblem(-32602, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **found}], **UNCACHED}


def prompt(*content):
    return lambda given: {"messages": [{"role": "user", "content": each} for each in content]}


def with_arguments(given):
    return prompt(text("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'".format(**given)))(given)


def with_resource(given):
    found = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
    return prompt(found, text("Please process the embedded resource above."))(given)


PROMPTS = {
    "test_simple_prompt": (prompt(text("This is a simple prompt for testing.")), ()),
    "test_prompt_with_arguments": (with_arguments, ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": (with_resource, ("resourceUri",)),
    "test_prompt_with_image": (prompt(IMAGE, text("Please analyze the image above.")), ()),
    "test_input_required_result_prompt": (prompt(text("It has a context.")), ()),
}
CONTEXT = {"user_context": form("What context should the prompt use?", NAMED)}


def listed_prompts(call):
    prompts = [
        {
            "name": name,
            "description": "A prompt of the suite",
            "arguments": [{"name": each, "description": "One of its arguments", "required": True} for each in wanted],
        }
        for name, (_, wanted) in PROMPTS.items()
    ]
    return {"prompts": prompts, **UNCACHED}


def got_prompt(call):
    asked = arguments(call)
    name = asked.get("name")
    if name not in PROMPTS:
        raise ToolProblem(-32602, "there is no such prompt")
    if name == "test_input_required_result_prompt" and answered(call, CONTEXT) is None:
        return {"resultType": "input_required", "inputRequests": CONTEXT}
    return PROMPTS[name][0](asked.get("arguments", {}))


def completed(call):
    return {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}


BESIDE = {
    "resources/list": listed_resources,
    "resources/templates/list": templates,
    "resources/read": read,
    "prompts/list": listed_prompts,
    "prompts/get": got_prompt,
    "completion/complete": completed,
}


class SuiteFace(Face):
    """The tools of the suite, and beside them resources, prompts and completion."""

    list_changed = True

    def __init__(self):
        self.changed = False
        super().__init__(
            [
                ToolRegistration(
                    {
                        "name": name,
                        "description": "A tool of the suite",
                        "inputSchema": INPUTS.get(name, {"type": "object"}),
                    },
                    "suite",
                    handle,
                )
                for name, handle in TOOLS.items()
            ]
        )
        self.methods = {method: ToolRegistration({"name": method}, "suite", each) for method, each in BESIDE.items()}

    @property
    def also(self):
        resources, prompts = {"listChanged": False, "subscribe": False}, {"listChanged": False}
        return Also({"resources": resources, "prompts": prompts, "completions": {}}, frozenset(self.methods))

    def behind(self, call):
        return self.methods.get(call.method) or self.registered[call.name]

    def tools(self):
        return [tool for tool in super().tools() if not (self.changed and tool["name"] == "test_logging_tool")]


FACE = SuiteFace()
session = HttpServer(FACE, EachItsOwn("run-1"), SystemClock(), SystemChance(), bearer=BEARER)
session._server.config.app = with_bearer(session._face)
serving = threading.Thread(target=session.serve)
serving.start()
sys.stdout.write(f"{session.url}\n")
sys.stdout.flush()
sys.stdin.read()
session.leave()
serving.join()
