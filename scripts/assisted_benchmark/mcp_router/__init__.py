"""Starts servers, observes their identity, and carries one claimed call to the one server."""
