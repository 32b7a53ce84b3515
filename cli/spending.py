"""What a run has cost, in words: money where PLANWEAVE_PRICES is set, calls and tokens by role."""

from agents.pricing import cost_of, load_prices
from cli.printable import one_line
from cli.texts import Texts
from graph.settings import load_settings
from schemas.errors import SettingsError
from schemas.evidence import Usage


def money(usage: Usage) -> str:
    """Return the cost with its currency; "" without prices, and what is wrong with them where they cannot be read."""
    path = load_settings().prices
    if path is None:
        return ""
    try:
        return one_line(str(cost_of(usage, load_prices(path))), 300)
    except SettingsError as error:
        return one_line(str(error), 300)


def by_role(usage: Usage, say: Texts) -> str:
    """Return each role's calls and tokens, with the model's name where a role has asked several."""
    parts: list[str] = []
    for role, models in usage.by_role.items():
        for model, part in models.items():
            name = role if len(models) == 1 else f"{role} ({one_line(model, 80)})"
            tokens = part.input_tokens + part.output_tokens
            parts.append(say("show.role_used", role=name, models=part.model_calls, tokens=tokens))
    return "; ".join(parts)
