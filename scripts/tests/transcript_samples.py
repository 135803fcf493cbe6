"""One session in every format that transcripts come in: two calls, what the model said, what the server answered."""

import io
import json
import zipfile

# What every sample holds. The arguments are spelled as only a text can keep them.
LOOK, CHOICE = b"{ }", b'{"targetId": "approve", "taskId": "t-1"}'
SAID, ANSWER = "I look first.", "the series"


def values():
    return json.loads(LOOK), json.loads(CHOICE)


def lines(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def call(number, name, arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def result(number, text=ANSWER, **more):
    return {"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": text}], **more}}


def mcp(look="get_benchmark_series", choose="click_target"):
    one, two = values()
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
    return lines(
        first, call(1, look, one), {"jsonrpc": "2.0", "method": "notifications/initialized"}, call(2, choose, two)
    )


def mcp_with_directions():
    one, two = values()
    there, back = "client-to-server", "server-to-client"
    return lines(
        {"direction": there, "at": "0.250s", "message": call(1, "get_benchmark_series", one), "pid": 7},
        {"direction": back, "at": "0.300s", "message": result(1)},
        # What a server asks has ids of its own, which mean nothing to its client's.
        {"direction": back, "message": {"jsonrpc": "2.0", "id": 2, "method": "ping"}},
        {"direction": there, "at": "1.5s", "message": call(2, "click_target", two)},
    )


def chat():
    def tool_call(key, name, arguments):
        return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments.decode()}}

    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": SAID, "tool_calls": [tool_call("a", "get_benchmark_series", LOOK)]},
        {"role": "tool", "tool_call_id": "a", "content": ANSWER},
        {"role": "assistant", "content": None, "tool_calls": [tool_call("b", "click_target", CHOICE)], "refusal": None},
    ]


def openai_chat():
    return json.dumps({"model": "m", "messages": chat(), "tools": []}).encode()


def openai_messages_by_line():
    return lines(*chat())


def openai_responses():
    def item(key, name, arguments):
        return {
            "type": "function_call",
            "id": f"fc_{key}",
            "call_id": key,
            "name": name,
            "arguments": arguments.decode(),
        }

    reasoning = {"type": "reasoning", "summary": []}
    first = item("a", "get_benchmark_series", LOOK)
    output = {"type": "function_call_output", "call_id": "a", "output": ANSWER}
    return json.dumps(
        {"object": "response", "output": [reasoning, first, output, item("b", "click_target", CHOICE)]}
    ).encode()


def anthropic():
    one, two = values()
    said = {"type": "text", "text": SAID}

    def use(key, name, given):
        return {"type": "tool_use", "id": key, "name": name, "input": given}

    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [said, use("a", "get_benchmark_series", one)]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ANSWER}]},
        {"role": "assistant", "content": [use("b", "click_target", two)]},
    ]
    return json.dumps({"messages": messages, "max_tokens": 9}).encode()


def agentdojo():
    one, two = values()

    def use(key, name, given):
        return {"function": name, "args": given, "id": key, "placeholder_args": None}

    messages = [
        {"role": "system", "content": [{"type": "text", "content": "be good"}]},
        {"role": "assistant", "content": SAID, "tool_calls": [use("a", "get_benchmark_series", one)]},
        {"role": "tool", "content": ANSWER, "tool_call_id": "a", "tool_call": use("a", "x", one), "error": None},
        {"role": "assistant", "content": None, "tool_calls": [use("b", "click_target", two)]},
        {"role": "assistant", "content": "done", "tool_calls": None},
    ]
    log = {"suite_name": "banking", "pipeline_name": "m", "user_task_id": "user_task_0", "injection_task_id": None}
    return json.dumps({**log, "attack_type": None, "messages": messages, "utility": True, "security": True}).encode()


def inspect_sample(sample_id="one", epoch=1, **more):
    one, _ = values()

    def use(key, name, given, **rest):
        return {"id": key, "function": name, "arguments": given, "type": "function", **rest}

    broken = use("x", "click_target", {}, parse_error="no JSON")
    long_one = {"taskId": "attachment://abc", "targetId": "approve"}
    messages = [
        {"id": "m1", "role": "user", "content": "go", "source": "input"},
        {"id": "m2", "role": "assistant", "content": SAID, "tool_calls": [use("a", "get_benchmark_series", one)]},
        {"id": "m3", "role": "tool", "content": ANSWER, "tool_call_id": "a", "function": "get_benchmark_series"},
        {"id": "m4", "role": "assistant", "content": "", "tool_calls": [broken]},
        {"id": "m5", "role": "assistant", "content": "", "tool_calls": [use("b", "click_target", long_one)]},
    ]
    attached = {"abc": "t-1"}
    return {"id": sample_id, "epoch": epoch, "input": "go", "messages": messages, "attachments": attached, **more}


def inspect_log(*samples):
    head = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "results": {"score": float("nan")}}
    return json.dumps({**head, "samples": list(samples or [inspect_sample()])}).encode()


def archive(entries, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return out.getvalue()


def inspect_archive(*samples):
    made = samples or [inspect_sample()]
    files = {f"samples/{each['id']}_epoch_{each['epoch']}.json": json.dumps(each).encode() for each in made}
    return archive({"header.json": b"{}", "_journal/start.json": b"{}", **files})
