"""The words of the program: plans, evidence, limits, state, events, errors. No I/O; imports nothing of ours."""
