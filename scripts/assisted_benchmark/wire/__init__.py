"""Strict JSON-RPC over stdio: frames, and both sides of a session in both protocol eras."""
