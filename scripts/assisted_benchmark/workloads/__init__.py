"""Test-only MCP servers and the oracle that reads what they really did."""
