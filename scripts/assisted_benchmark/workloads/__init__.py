"""Test-only servers, of MCP, of one HTTP API and of one local socket, and oracles that read what they really did."""
