"""Public vectors: decisions as plain JSON that explains itself, for any implementation in any language."""
