"""An offline policy-and-dispatch test harness for agents that call MCP tools."""
