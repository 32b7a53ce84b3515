"""The graph's nodes: one verb per file. Pure rules stand beside them: readiness, verdict, citations, briefs."""
