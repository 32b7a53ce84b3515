"""The parts of the embedded model: reading the request, planning, searching, quoting, reviewing, writing."""
