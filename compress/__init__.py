"""What a handoff is, the ways to write one, and the literal way to read one."""
