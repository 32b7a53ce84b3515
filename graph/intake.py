"""What a new run is given: an objective, or the messages of a chat, made safe to keep."""

import uuid
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, convert_to_messages

from agents.incoming import clean_data, received
from schemas.errors import InputError
from schemas.state import MAX_OBJECTIVE_CHARS
from tools.results import clean_text


def task_input(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a new run: the objective, its message, and a run id.

    Raises:
        InputError: the objective is missing, empty, too long, or not text; or the messages cannot be read.
    """
    messages = chat_messages(given.get("messages") or [])
    objective = given.get("objective")
    if objective is None:
        human = [m for m in messages if isinstance(m, HumanMessage)]
        objective = human[-1].text if human else None
    if not isinstance(objective, str) or not objective.strip():
        raise InputError("the objective is missing or empty: pass {'objective': '...'} or a human message")
    if len(objective) > MAX_OBJECTIVE_CHARS:
        raise InputError(
            f"the objective has {len(objective)} characters: at most {MAX_OBJECTIVE_CHARS} are allowed"
        )
    objective = clean_text(objective).strip()
    if not objective:
        raise InputError("the objective holds no readable text")
    return {
        "objective": objective,
        "messages": messages or [HumanMessage(objective)],
        "run_id": given.get("run_id") or uuid.uuid4().hex,
    }


def chat_messages(given: Any) -> list[AnyMessage]:
    """Return a chat's messages as LangChain's, with valid text.

    Raises:
        InputError: they are none.
    """
    try:
        messages = convert_to_messages(given)
    except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"the messages cannot be read: {line[:300]}") from None
    safe = [
        received(m) if isinstance(m, AIMessage) else m.model_copy(update={"content": clean_data(m.content)})
        for m in messages
    ]
    return cast("list[AnyMessage]", safe)
