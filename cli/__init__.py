"""The command `planweave`: parse, show events, exit codes."""
