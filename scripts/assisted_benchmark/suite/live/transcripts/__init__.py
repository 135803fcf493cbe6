"""Transcripts: what an agent called once, read from the files that other tools and this one leave."""
