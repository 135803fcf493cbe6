"""What servers may offer, pinned: the model, the strict YAML it is written in, and drift."""
