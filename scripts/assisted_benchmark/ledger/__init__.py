"""What was used, for good: groups, their transitions, and the receipts of every decision."""
