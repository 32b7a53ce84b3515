import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live: asks the model that AGENT_MODEL and OPENAI_BASE_URL name")
