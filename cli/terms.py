"""What a run is started with, as its checkpoints keep it: `resume THREAD` needs nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from cli.kit import Kit
from graph.choices import CHOICES
from graph.runner import thread_config
from schemas.context import RunContext

if TYPE_CHECKING:
    from graph.threads import TaskGraph

# An update by hand may have left them out; a checkpoint before it has them.
_LOOK_BACK = 20


@dataclass(frozen=True)
class Terms:
    """What a run is started with besides its objective.

    Attributes:
        kit: what its tools are over.
        context: the run's choices; None = the defaults.
    """

    kit: Kit = field(default_factory=Kit)
    context: RunContext | None = None

    def metadata(self) -> dict[str, str]:
        """Return the terms as they are stored."""
        stored = self.kit.metadata()
        if self.context is not None:
            stored[CHOICES] = self.context.model_dump_json(exclude_defaults=True)
        return stored

    def with_kit(self, kit: Kit) -> Self:
        """Return the terms with other tools, where other ones are given."""
        return replace(self, kit=kit.over(self.kit))

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the terms that a checkpoint has stored."""
        choices = metadata.get(CHOICES)
        return cls(Kit.of(metadata), RunContext.model_validate_json(choices) if choices else None)


async def stored_terms(graph: "TaskGraph", thread_id: str) -> Terms:
    """Return the terms of a thread's run; the defaults where none are stored."""
    async for snapshot in graph.aget_state_history(thread_config(thread_id), limit=_LOOK_BACK):
        metadata: Mapping[str, Any] = snapshot.metadata or {}
        terms = Terms.of(metadata)
        if terms != Terms() or metadata.get("source") != "update":
            return terms
    return Terms()
