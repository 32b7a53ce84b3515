"""A model that goes in circles: when it does, and what it is told of a call that it has made before. Pure functions."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from agents.call_record import call_key
from agents.middleware.fit import size
from tools.registry import ToolRegistry

REPEATED_ROUNDS = 3
# The first of them may be a slip; three equal rounds hold two.
MOST_REPEATS = 2
SAME_ABOVE = "(the same call as before: its result stands above. Answer from that text.)"


def goes_in_circles(messages: list[AnyMessage], registry: ToolRegistry) -> bool:
    """Return whether the model asks for the same over and over, or only for what cannot be run."""
    return rounds_repeat(messages) or rounds_of_repeats(messages, registry) >= MOST_REPEATS


def rounds_repeat(messages: list[AnyMessage]) -> bool:
    """Return whether the last three rounds of tool calls asked for the same, or only for what cannot be run."""
    rounds = [m for m in messages if isinstance(m, AIMessage) and m.tool_calls][-REPEATED_ROUNDS:]
    if len(rounds) < REPEATED_ROUNDS:
        return False
    if len({frozenset(call_key(c["name"], c["args"]) for c in m.tool_calls) for m in rounds}) == 1:
        return True
    first = messages.index(rounds[0])
    replies = [m for m in messages[first:] if isinstance(m, ToolMessage)]
    return bool(replies) and all(reply.status == "error" for reply in replies)


def rounds_of_repeats(messages: Sequence[AnyMessage], registry: ToolRegistry) -> int:
    """Return how many rounds asked only for what had been asked before, where asking again gives the same."""
    idempotent = {name for name in registry.names() if registry.spec(name).idempotent}
    seen: set[str] = set()
    repeats = 0
    for message in messages:
        if not (isinstance(message, AIMessage) and message.tool_calls):
            continue
        keys = {call_key(call["name"], call["args"]) for call in message.tool_calls}
        repeats += keys <= seen
        seen |= {call_key(c["name"], c["args"]) for c in message.tool_calls if c["name"] in idempotent}
    return repeats


def repeated_result(messages: Sequence[AnyMessage], content: str, max_request_chars: int) -> str:
    """Return what the model is told of a call that it repeats: the result again only where it may have been cut since.

    Args:
        messages: of the step so far.
        content: the result.
        max_request_chars: above which the oldest results are cut, see agents/middleware/fit.py.
    """
    if sum(map(size, messages)) + len(content) < max_request_chars:
        return SAME_ABOVE
    return f"(the same call as before, with the same result)\n{content}"
