"""Who does the work: models, structured answers, the worker and its middleware, prompts."""
