"""What is proved by looking at every case: small models of the brokers, and schedules of the real ones."""
