"""Test-only servers, of MCP and of one HTTP API, and the oracles that read what they really did."""
