"""What the model has answered in one attempt at a step: a worker that begins again after a crash hears the same.

An answer is stored together with the first tool call that it asks for, in the same row (agents/ledger.py). So it costs
no write of its own, no call runs whose answer is not kept, and the worker needs no checkpoints while it works. Answers
that no call has followed yet are asked for again.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage


class Answers:
    """The answers of one attempt, by turn: the first one is 1."""

    def __init__(self) -> None:
        self._stored: dict[int, AIMessage] = {}
        self._unsaved: dict[int, AIMessage] = {}

    def restore(self, recorded: Mapping[str, Mapping[str, Any]]) -> None:
        """Take up answers of an interrupted run."""
        for turn, message in recorded.items():
            self._stored[int(turn)] = AIMessage.model_validate(message)

    def again(self, turn: int) -> AIMessage | None:
        """Return the answer that an interrupted run got in this turn; None = the model is to be asked."""
        answer = self._stored.pop(turn, None)
        if answer is None:
            self._stored.clear()  # whatever came later was said in another conversation
        return answer

    def note(self, turn: int, message: AIMessage) -> None:
        """Remember an answer until the next call is recorded."""
        self._unsaved[turn] = message

    def unsaved(self) -> dict[str, dict[str, Any]]:
        """Return the answers since the last recorded call, for the next one's record."""
        answers, self._unsaved = self._unsaved, {}
        # What is no JSON (some clients' metadata) is kept as text.
        return {
            str(turn): message.model_dump(mode="json", fallback=str, exclude_defaults=True)
            for turn, message in answers.items()
        }
