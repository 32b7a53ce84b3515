"""The worker's middleware: one concern per file."""
