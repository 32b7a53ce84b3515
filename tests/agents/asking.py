"""Sending the embedded model each role's request."""

import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel

from agents.offline import OfflineChatModel
from schemas.evidence import Finding
from schemas.plan import PlanDraft, parse_draft

MODEL = OfflineChatModel()
TOOLS = [{"name": n, "description": "", "permission": "read"} for n in ("search_documents", "read_document")]
SQL_TOOL = {"name": "query_tables", "description": "", "permission": "read"}


def schema_tool(name: str, schema: type[BaseModel]) -> dict[str, Any]:
    function = {"name": name, "description": "", "parameters": schema.model_json_schema()}
    return {"type": "function", "function": function}


FINDING = schema_tool("Finding", Finding)


def ask(request: dict[str, Any], *later: BaseMessage, tools: Any = ()) -> AIMessage:
    messages = [SystemMessage("{not json}"), HumanMessage(json.dumps(request)), *later]
    answer = MODEL.bind_tools(tools).invoke(messages) if tools else MODEL.invoke(messages)
    assert isinstance(answer, AIMessage)
    return answer


def group(name: str, *files: str) -> dict[str, Any]:
    documents = [
        {"path": f"{name}/{f}" if name else f, "title": f"{name} {f}", "headings": []} for f in files
    ]
    return {"name": name, "documents": documents}


def catalogue(*groups: dict[str, Any], tables: Any = ()) -> dict[str, Any]:
    return {"documents": {"groups": list(groups), "left_out": 0}, "tables": list(tables)}


def plan(
    objective: str, content: dict[str, Any], *, tools: Any = TOOLS, max_steps: int = 20, budget: int = 32
) -> PlanDraft:
    limits = {"max_steps": max_steps, "tool_budget": budget}
    request = {
        "role": "planner",
        "objective": objective,
        "tools": tools,
        "catalogue": content,
        "limits": limits,
    }
    answer = ask(request, tools=[schema_tool("Plan", PlanDraft)])
    return parse_draft(answer.tool_calls[0]["args"], tools=[t["name"] for t in tools], max_steps=max_steps)


def search_documents(query: str, k: int = 5) -> str:
    """Search."""
    return query


def query_tables(sql: str) -> str:
    """Query."""
    return sql


SEARCH: BaseTool = StructuredTool.from_function(search_documents)
QUERY: BaseTool = StructuredTool.from_function(query_tables)


def work(
    criteria: list[str],
    *results: str,
    task: str = "Find it",
    budget: int = 4,
    objective: str = "Find it",
    dependencies: Any = (),
    tools: Any = (SEARCH,),
) -> tuple[list[list[dict[str, Any]]], Finding]:
    """Run the worker; each call gets the next result, the last one again. Return the calls, message by message."""
    step = {"id": "s", "task": task, "success_criteria": criteria, "tool_budget": budget}
    request = {"role": "worker", "objective": objective, "step": step, "dependencies": list(dependencies)}
    rounds: list[list[dict[str, Any]]] = []
    later: list[BaseMessage] = []
    given = list(results) or ["No document matches."]
    for _ in range(8):
        used = sum(map(len, rounds))
        answer = ask(request, *later, tools=[*(tools if used < budget else ()), FINDING])
        if answer.tool_calls[0]["name"] == "Finding":
            return rounds, Finding.model_validate(answer.tool_calls[0]["args"])
        rounds.append([dict(call) for call in answer.tool_calls])
        later.append(answer)
        for call in answer.tool_calls:
            content = given.pop(0) if len(given) > 1 else given[0]
            later.append(ToolMessage(content, tool_call_id=str(call["id"])))
    raise AssertionError("the worker does not conclude")


PRICE_OF = "{}: pricing, an amount with a source"
SUMMARY = "- alda: pricing: “The Team plan costs $19 per seat.” (alda/pricing.md#L3)"
SOURCE = {
    "id": "aaa1111",
    "title": "Alda pricing",
    "locator": "alda/pricing.md#L3",
    "excerpt": "The Team plan",
}
CARRIED = {"step_id": "a", "task": "t", "summary": SUMMARY, "source_ids": ["aaa1111"], "sources": [SOURCE]}
