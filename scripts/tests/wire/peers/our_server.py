"""Our server session as a process: echo, slow, fail, boom, change."""

from assisted_benchmark.wire.server_session import ServerSession
from assisted_benchmark.wire.server_side import ToolProblem


class Handler:
    instructions = "be kind"
    list_changed = True
    names = ("echo", "slow", "fail", "boom", "change", "wait")

    def info(self):
        return {"name": "ours", "version": "1"}

    def tools(self):
        return [{"name": name, "inputSchema": {"type": "object"}} for name in self.names]

    def call(self, name, arguments, ctx):
        if name == "slow":
            for step in (1, 2, 3):
                ctx.progress(step, 3, f"step {step}")
        elif name == "boom":
            raise ToolProblem(-32602, "no", {"why": "boom"})
        elif name == "change":
            self.names = (*self.names, "new")
            ctx.announce_tools()
        text = [{"type": "text", "text": "ok"}]
        return {"content": text, "structuredContent": arguments, "isError": name == "fail"}


ServerSession(Handler(), page_size=4).serve()
