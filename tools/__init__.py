"""What a worker may do: documents, files and tables under one folder, and the registry of every tool."""
