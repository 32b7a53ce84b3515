"""The whole wiring on one screen.

START -> plan -> clarify? -> approve? -> schedule -> execute x N (Send, parallel) -> schedule -> ... -> review
                                                     review -> finish | replan -> approve? | escalate? -> ...
finish -> END
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from agents.calling import Asking
from agents.checks import StepVerifier
from agents.draining import Drain
from agents.models import Models, ModelSettings, Role
from graph.beside import store_beside
from graph.locks import ThreadLocks
from graph.routing import (
    route_approve,
    route_escalate,
    route_plan,
    route_replan,
    route_review,
    route_schedule,
)
from graph.serializer import readable
from graph.settings import Settings, load_settings
from graph.threads import TaskGraph
from graph.whole_tasks import with_whole_tasks
from nodes.approve import make_approve
from nodes.clarify import make_clarify
from nodes.escalate import make_escalate
from nodes.execute import make_execute
from nodes.finish import make_finish
from nodes.parts import GoalVerifier, Parts
from nodes.plan import make_plan
from nodes.replan import make_replan
from nodes.review import make_review
from nodes.schedule import make_schedule
from schemas.context import RunContext
from schemas.state import LaneTask, TaskInput, TaskOutput, TaskState
from tools.artifacts import ArtifactStore, MemoryArtifacts
from tools.own_thread import in_own_thread
from tools.registry import ToolRegistry
from tools.whole_text import NAME as READ_DOCUMENT
from tools.whole_text import whole_text_tool


def wire(parts: Parts) -> "StateGraph[TaskState, RunContext, TaskInput, TaskOutput]":
    """Return the graph, not compiled."""
    graph: StateGraph[TaskState, RunContext, TaskInput, TaskOutput] = StateGraph(
        TaskState, context_schema=RunContext, input_schema=TaskInput, output_schema=TaskOutput
    )
    graph.add_node("plan", make_plan(parts))
    graph.add_node("clarify", make_clarify())
    graph.add_node("approve", make_approve(parts))
    graph.add_node("schedule", make_schedule(parts))
    graph.add_node("execute", make_execute(parts), input_schema=LaneTask)
    graph.add_node("review", make_review(parts))
    graph.add_node("replan", make_replan(parts))
    graph.add_node("escalate", make_escalate())
    graph.add_node("finish", make_finish(parts))

    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", route_plan, ["clarify", "approve", "schedule", "finish"])
    graph.add_edge("clarify", "plan")
    graph.add_conditional_edges("approve", route_approve, ["schedule", "plan", "replan", "finish"])
    graph.add_conditional_edges("schedule", route_schedule, ["execute", "review"])
    graph.add_edge("execute", "schedule")
    graph.add_conditional_edges("review", route_review, ["replan", "escalate", "finish"])
    graph.add_conditional_edges("escalate", route_escalate, ["schedule", "replan", "finish"])
    graph.add_conditional_edges("replan", route_replan, ["approve", "schedule", "finish"])
    graph.add_edge("finish", END)
    return graph


def build_graph(
    models: Models | None = None,
    tools: Sequence[BaseTool] = (),
    *,
    verify_step: StepVerifier | None = None,
    verify_goal: GoalVerifier | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    artifacts: ArtifactStore | None = None,
    locks: ThreadLocks | None = None,
    parts: dict[str, Any] | None = None,
    settings: Settings | None = None,
) -> TaskGraph:
    """Build the application; nothing is connected or opened.

    Args:
        models: of the four roles, or their names; None = AGENT_MODEL, or the embedded model where that is not set.
        tools: ordinary LangChain tools; `metadata` may say permission, idempotent, timeout_seconds.
        verify_step: called with (step, evidence) after a step has passed all else; must return a bool.
        verify_goal: called with (plan, evidence) before a run is completed; must return a bool.
        checkpointer: where threads are kept; None = nowhere (an Agent Server brings its own).
        store: where ledgers of running steps are kept; None = in the database of an AsyncSqliteSaver, beside the
            checkpoints, else in memory. With another checkpointer that outlives the process pass a store that does so
            too: without it a crash costs what running steps had done, and the resume logs a warning.
        artifacts: where full texts of results are kept; None = in memory.
        locks: one run per thread; None = within this process.
        parts: further Parts (sweep, now, clock), for open_graph and tests.
        settings: None = read from the environment.

    Raises:
        SettingsError: a model cannot be used. ToolDefinitionError: a tool cannot be offered.
    """
    settings = settings or load_settings()
    chosen = with_fallbacks(models or configured_models(settings), settings)
    base = store if store is not None else store_beside(checkpointer)
    kept = artifacts or MemoryArtifacts()
    whole = Parts(
        models=chosen.resolve(model_settings(settings)),
        registry=ToolRegistry(offered(tools, kept)),
        artifacts=kept,
        store=base,
        drain=Drain(settings.grace_seconds),
        verify_step=verify_step,
        verify_goal=verify_goal,
        **(parts or {}),
    )
    compiled = wire(whole).compile(
        checkpointer=with_whole_tasks(readable(checkpointer)), store=store, name="planweave"
    )
    return TaskGraph.of(compiled, whole, locks or ThreadLocks())


def offered(tools: Sequence[BaseTool], artifacts: ArtifactStore) -> list[BaseTool]:
    """Return the tools, sync ones in threads of their own, with read_document for whatever gets too long."""
    offered = [in_own_thread(_not_direct(tool)) for tool in tools]
    if offered and all(tool.name != READ_DOCUMENT for tool in offered):
        offered.append(whole_text_tool(dict, artifacts, None))
    return offered


def _not_direct(tool: BaseTool) -> BaseTool:
    # A result returned directly would end the worker before it has concluded.
    return tool.model_copy(update={"return_direct": False}) if tool.return_direct else tool


def configured_models(settings: Settings) -> Models:
    """Return the models that the settings name; the embedded model for every role where they name none."""
    default = settings.agent_model
    roles = (settings.planner_model, settings.worker_model, settings.reviewer_model, settings.writer_model)
    if default is None and not any(roles):
        from agents.offline import OfflineChatModel

        return Models.single(OfflineChatModel())
    named = default or next(role for role in roles if role)
    planner, worker, reviewer, writer = (role or named for role in roles)
    return Models(planner, worker, reviewer, writer)


def with_fallbacks(models: Models, settings: Settings) -> Models:
    """Return the models with the settings' fallbacks for the roles that have none of their own."""
    named: dict[Role, str | None] = {
        "planner": settings.planner_fallback_model,
        "worker": settings.worker_fallback_model,
        "reviewer": settings.reviewer_fallback_model,
        "writer": settings.writer_fallback_model,
    }
    found: dict[Role, BaseChatModel | str] = {}
    for role, name in named.items():
        model = models.fallbacks.get(role) or name or settings.fallback_model
        if model:
            found[role] = model
    return replace(models, fallbacks=found)


def model_settings(settings: Settings) -> ModelSettings:
    """Return how named models are reached."""
    key, other_key = settings.openai_api_key, settings.fallback_api_key
    return ModelSettings(
        asking=Asking(
            settings.structured, settings.max_model_concurrency, settings.model_requests_per_minute
        ),
        fallback_base_url=settings.fallback_base_url,
        fallback_api_key=other_key.get_secret_value() if other_key else None,
        base_url=settings.openai_base_url,
        api_key=key.get_secret_value() if key else None,
        max_tokens=settings.max_output_tokens,
        timeout_seconds=settings.model_timeout_seconds,
    )
