"""What tokens cost: a small file of prices, and the money that a run has taken.

    currency: USD
    models:                     # per million tokens
      gpt-5-mini: {input: 0.25, output: 2.0}
      qwen3:8b:   {input: 0, output: 0}

JSON of the same shape is read too. A model is found by its name, or by the longest name in the file that it begins
with: providers report gpt-5-mini as gpt-5-mini-2025-08-07.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import SettingsError
from schemas.evidence import ModelUsage, Usage

MILLION = 1_000_000
SETTING = "PLANWEAVE_PRICES"


class Price(BaseModel):
    """Money for a million tokens."""

    model_config = ConfigDict(extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class Prices(BaseModel):
    """The prices of some models, in one currency."""

    model_config = ConfigDict(extra="forbid")

    currency: str = Field(default="USD", min_length=1, max_length=12)
    models: dict[str, Price]

    def of(self, model: str) -> Price | None:
        """Return a model's price, or None where the file has none."""
        names = {_bare(name): price for name, price in self.models.items()}
        known = [name for name in names if _bare(model).startswith(name)]
        return names[max(known, key=len)] if known else None


@dataclass(frozen=True)
class Cost:
    """What a run has cost; `unpriced` names the models that have no price, and are not counted."""

    amount: float
    currency: str
    unpriced: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return amount and currency, with as many digits as small sums need."""
        digits = 2 if self.amount >= 1 or self.amount == 0 else 4
        more = f" + ? ({', '.join(self.unpriced)})" if self.unpriced else ""
        return f"{self.amount:.{digits}f} {self.currency}{more}"


def load_prices(path: Path) -> Prices:
    """Read a file of prices.

    Raises:
        SettingsError: it cannot be read, or is not of that shape.
    """
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
        return Prices.model_validate(data)
    except OSError as error:
        raise SettingsError(f"{SETTING} {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{SETTING} {path}: not YAML or JSON: {' '.join(str(error).split())[:200]}"
        ) from None
    except ValidationError as error:
        item = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, item["loc"])) or "the file"
        raise SettingsError(f"{SETTING} {path}: {where}: {item['msg']}") from None


def cost_of(usage: Usage, prices: Prices) -> Cost:
    """Return what the usage has cost, model by model."""
    amount, unpriced = 0.0, dict[str, None]()
    for model, spent in by_model(usage.by_role).items():
        price = prices.of(model)
        if price is None:
            if spent.input_tokens or spent.output_tokens:
                unpriced[model] = None
            continue
        amount += (spent.input_tokens * price.input + spent.output_tokens * price.output) / MILLION
    return Cost(amount, prices.currency, tuple(unpriced))


def by_model(by_role: Mapping[str, Mapping[str, ModelUsage]]) -> dict[str, ModelUsage]:
    """Return what was spent on each model, over all roles."""
    found: dict[str, ModelUsage] = {}
    for models in by_role.values():
        for model, spent in models.items():
            found[model] = found.get(model, ModelUsage()) + spent
    return found


def _bare(name: str) -> str:
    return name.strip().removeprefix("openai:").casefold()
