"""The four roles' models, and how a name becomes a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from langchain_core.language_models.chat_models import BaseChatModel

from agents.calling import Asking, RoleModel
from schemas.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

Role = Literal["planner", "worker", "reviewer", "writer"]
# Prefixes that init_chat_model reads as a provider. Anything else before a colon is part of a model's name ("qwen3:8b").
PROVIDERS = frozenset(
    [
        "openai",
        "anthropic",
        "azure_openai",
        "azure_ai",
        "google_vertexai",
        "google_genai",
        "bedrock",
        "bedrock_converse",
        "cohere",
        "fireworks",
        "together",
        "mistralai",
        "huggingface",
        "groq",
        "ollama",
        "deepseek",
        "ibm",
        "nvidia",
        "xai",
        "perplexity",
        "openrouter",
        "litellm",
        "upstage",
    ]
)


@dataclass(frozen=True)
class ModelSettings:
    """How named models are reached.

    Attributes:
        base_url: of a server that speaks the OpenAI protocol.
        max_tokens: of each answer.
        timeout_seconds: of each request.
        asking: see agents/calling.py.
        fallback_base_url, fallback_api_key: of the server of fallback models; None = the same.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_tokens: int = 4096
    timeout_seconds: float = 120
    asking: Asking = field(default_factory=Asking)
    fallback_base_url: str | None = None
    fallback_api_key: str | None = field(default=None, repr=False)

    def of_fallbacks(self) -> "ModelSettings":
        """Return how named fallback models are reached: at their own address, where one is set."""
        if self.fallback_base_url is None and self.fallback_api_key is None:
            return self
        key = self.fallback_api_key or (None if self.fallback_base_url else self.api_key)
        return replace(self, base_url=self.fallback_base_url or self.base_url, api_key=key)


@dataclass(frozen=True)
class Models:
    """A chat model, or the name of one ("openai:gpt-5-mini"), for each role.

    Attributes:
        fallbacks: by role: the model that takes over where the role's own cannot be reached.
    """

    planner: BaseChatModel | str
    worker: BaseChatModel | str
    reviewer: BaseChatModel | str
    writer: BaseChatModel | str
    fallbacks: Mapping[Role, BaseChatModel | str] = field(default_factory=dict["Role", "BaseChatModel | str"])

    @classmethod
    def single(cls, model: BaseChatModel | str) -> Self:
        """Use one model for every role."""
        return cls(model, model, model, model)

    def resolve(self, settings: ModelSettings) -> "ResolvedModels":
        """Turn names into models.

        Raises:
            SettingsError: a name names no provider, its package is missing, or its key is not set.
        """
        own = _Built(settings)
        others = _Built(settings.of_fallbacks())
        return ResolvedModels(
            planner=own.get(self.planner),
            worker=own.get(self.worker),
            reviewer=own.get(self.reviewer),
            writer=own.get(self.writer),
            fallbacks={role: others.get(model) for role, model in self.fallbacks.items()},
            asking=settings.asking,
        )


@dataclass(frozen=True)
class ResolvedModels:
    """A chat model for each role, and how they are asked."""

    planner: BaseChatModel
    worker: BaseChatModel
    reviewer: BaseChatModel
    writer: BaseChatModel
    fallbacks: Mapping[Role, BaseChatModel] = field(default_factory=dict["Role", BaseChatModel])
    asking: Asking = field(default_factory=Asking)

    def role(self, name: Role) -> RoleModel:
        """Return a role's model with its fallback."""
        models: dict[Role, BaseChatModel] = {
            "planner": self.planner,
            "worker": self.worker,
            "reviewer": self.reviewer,
            "writer": self.writer,
        }
        return RoleModel(models[name], self.fallbacks.get(name), self.asking)


@dataclass
class _Built:
    """Models by name, each built once."""

    settings: ModelSettings
    models: dict[str, BaseChatModel] = field(default_factory=dict[str, BaseChatModel])

    def get(self, model: BaseChatModel | str) -> BaseChatModel:
        if not isinstance(model, str):
            return model
        if model not in self.models:
            self.models[model] = named_model(model, self.settings)
        return self.models[model]


def named_model(name: str, settings: ModelSettings) -> BaseChatModel:
    """Build the model of that name; see Models.resolve for the errors."""
    prefix, _, rest = name.strip().partition(":")
    if not name.strip() or (prefix == "openai" and not rest):
        raise SettingsError("AGENT_MODEL is empty: write provider:model, for example openai:gpt-5-mini")
    if prefix == "openai" and rest:
        return _openai_model(rest, settings)
    if prefix in PROVIDERS and rest:
        return _provider_model(name.strip(), settings)
    if settings.base_url:
        return _openai_model(name.strip(), settings)
    if name.startswith(("gpt-", "o1", "o3", "o4", "chatgpt")):
        return _openai_model(name.strip(), settings)
    raise SettingsError(
        f"AGENT_MODEL {name!r} names no provider: write provider:model (openai:{name}), "
        "or set OPENAI_BASE_URL to the address of a server that speaks the OpenAI protocol"
    )


def _openai_model(model: str, settings: ModelSettings) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    if not settings.base_url and not settings.api_key:
        raise SettingsError(
            "OPENAI_API_KEY is not set: set it, or set OPENAI_BASE_URL for a server of your own"
        )
    build = cast("Callable[..., BaseChatModel]", ChatOpenAI)
    kwargs: dict[str, Any] = {"base_url": settings.base_url} if settings.base_url else {}
    return build(
        model=model,
        # A server of one's own often wants no key, but the client refuses to start without one.
        api_key=settings.api_key or "not-needed",
        max_tokens=settings.max_tokens,
        timeout=settings.timeout_seconds,
        max_retries=0,  # retries are ours: they must respect the step's time
        **kwargs,
    )


def _provider_model(name: str, settings: ModelSettings) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(name, max_tokens=settings.max_tokens, timeout=settings.timeout_seconds)
    except ImportError as error:
        raise SettingsError(f"AGENT_MODEL {name!r}: {error}".splitlines()[0]) from None
    except Exception as error:  # noqa: BLE001 - each provider has its own error for a missing key
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingsError(f"AGENT_MODEL {name!r} cannot be used: {text[:300]}") from None
