"""The brokers served to an agent over MCP: tools from one seam, in both protocol eras."""
