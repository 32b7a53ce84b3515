"""Streamed planning: steps start while the planner still writes, and nothing else about a run changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command, interrupt

from graph.persistence import Kept
from nodes.readiness import active_seconds
from schemas.events import RUN_EVENT, PlanReady
from tests.backends import built_on
from tests.gates import Gates
from tests.running import Bench, bench, config, context, of
from tests.scripted import ScriptedModel, finding, look, plan, step
from tests.streaming import Stream, StreamingModel, bench_of, works, written


def on(**choices: Any) -> Any:
    return context(stream_plan=True, **choices)


async def events_of(b: Bench, ctx: Any) -> list[Any]:
    stream = b.graph.astream({"objective": "find it"}, config(), context=ctx, stream_mode="custom")
    return [RUN_EVENT.validate_python(chunk) async for chunk in stream]


async def run(b: Bench, gates: Gates, ctx: Any) -> dict[str, Any]:
    """Run to the end, and let the script see which steps have ended."""
    async for event in b.graph.astream({"objective": "find it"}, config(), context=ctx, stream_mode="custom"):
        gates.follow(event)
    return await b.values()


async def kinds_of(b: Bench, ctx: Any) -> list[str]:
    """Return what happened, as "type" or "type step"."""
    return [f"{e.type} {getattr(e, 'step_id', '')}".strip() for e in await events_of(b, ctx)]


def starts_late(kinds: list[str], *steps: str) -> bool:
    return all(kinds.index("plan_ready") < kinds.index(f"step_started {i}") for i in steps)


@pytest.mark.parametrize("form", ["tool", "text", "schema"])
async def test_a_step_starts_before_the_planner_has_written_its_last_word(form: str) -> None:
    gates = Gates("a", "b")
    answer = written(step("a"), gates.began["a"], step("b"), form=form)
    b = bench_of(answer, work=works("a", "b"), tools=[gates.tool()])
    if form == "schema":
        b.planner.profile = {"structured_output": True, "tool_calling": True}
    kinds = await kinds_of(b, on())
    assert kinds.index("tool_started a") < kinds.index("plan_ready")
    out = await b.values()
    assert out["status"] == "completed"
    assert sorted(gates.runs) == ["a", "b"]
    assert [p.version for p in out["plans"]] == [1]
    assert {e.plan_version for e in out["evidence"]} == {1}


async def test_the_last_step_of_the_list_starts_before_the_answer_ends() -> None:
    gates = Gates("a")
    b = bench_of(written(step("a"), gates.began["a"]), work=works("a"), tools=[gates.tool()])
    assert (await b.run(ctx=on()))["status"] == "completed"


async def test_off_by_default_nothing_starts_before_the_plan_is_whole() -> None:
    gates = Gates("a", "b")
    b = bench_of(written(step("a"), step("b")), work=works("a", "b"), tools=[gates.tool()])
    assert starts_late(await kinds_of(b, None), "a", "b")


@pytest.mark.parametrize("choices", [{"mode": "reflect"}, {"max_tokens": 5000}])
async def test_off_in_mode_reflect_and_where_tokens_are_bounded(choices: dict[str, Any]) -> None:
    gates = Gates("a", "b")
    b = bench_of(written(step("a"), step("b")), work=works("a", "b"), tools=[gates.tool()])
    assert starts_late(await kinds_of(b, on(**choices)), "a", "b")


@pytest.mark.parametrize("review_plan", ["first", "always"])
async def test_off_where_a_person_reviews_the_plan(review_plan: str) -> None:
    gates = Gates("a")
    b = bench_of(written(step("a")), work=works("a"), tools=[gates.tool()])
    kinds = await kinds_of(b, on(review_plan=review_plan))
    assert kinds == ["run_started", "plan_ready"]
    assert gates.runs == []
    assert (await b.go_on(Command(resume={"decision": "approve"})))["status"] == "completed"


async def test_a_dependent_step_waits_for_its_dependency_and_reads_it() -> None:
    gates = Gates("a", "b")
    b = bench_of(
        written(step("a"), step("b", "a"), gates.began["b"]), work=works("a", "b"), tools=[gates.tool()]
    )
    out = await b.run(ctx=on())
    assert gates.runs == ["a", "b"]
    assert of(out, "a").finished_at <= of(out, "b").started_at
    brief = next(q.brief for q in b.worker.asked if q.brief["step"]["id"] == "b")
    assert [d["step_id"] for d in brief["dependencies"]] == ["a"]
    assert out["status"] == "completed"


async def test_a_step_whose_dependency_is_written_later_starts_behind_it() -> None:
    gates = Gates("a", "b")
    answer = written(step("b", "a"), step("a"), gates.began["b"])
    b = bench_of(answer, work=works("a", "b"), tools=[gates.tool()])
    assert (await b.run(ctx=on()))["status"] == "completed"
    assert gates.runs == ["a", "b"]


async def test_invariant_10_a_step_behind_a_failed_one_never_starts() -> None:
    gates = Gates("a", "b")
    failed = {"a": [look(query="a"), finding("a", "s-a", met=False)], "b": []}
    answer = written(step("a"), gates.began["a"], step("b", "a"))
    b = bench_of(answer, work=failed, tools=[gates.tool()])
    out = await b.run(ctx=on(max_replans=0))
    assert gates.runs == ["a"]
    assert of(out, "b").skipped_because == "a"


@pytest.mark.parametrize("permission", ["write", "execute", "network"])
async def test_steps_with_tools_that_change_something_wait_for_the_whole_plan(permission: str) -> None:
    gates, writes = Gates("a"), Gates("w", "v")
    steps = (step("w", tools=["put"]), step("v", "w", tools=["put"]), step("a", tools=["look"]))
    b = bench_of(
        written(*steps, gates.began["a"]),
        work=works("a") | works("w", "v", tool="put"),
        tools=[gates.tool(), writes.tool("put", permission=permission)],
    )
    assert starts_late(await kinds_of(b, on(autonomy="all")), "w", "v")
    assert writes.runs == ["w", "v"]
    assert (await b.values())["status"] == "completed"


async def test_with_every_tool_allowed_a_step_without_a_list_of_tools_may_write_and_waits() -> None:
    gates, writes = Gates("a"), Gates()
    b = bench_of(
        written(step("a")), work=works("a"), tools=[gates.tool(), writes.tool("put", permission="write")]
    )
    assert starts_late(await kinds_of(b, on(autonomy="all")), "a")


async def test_no_step_starts_while_questions_are_open() -> None:
    gates = Gates("a")
    b = bench_of(written(step("a"), questions=["Which one?"]), work=works("a"), tools=[gates.tool()])
    assert starts_late(await kinds_of(b, on()), "a")
    assert any("Which one?" in line for line in (await b.values())["plan"].assumptions)


async def test_questions_alone_are_put_to_a_person_and_the_answered_plan_streams() -> None:
    gates = Gates("a", "b")
    ask = Stream(['{"goal": "g", "questions": ["Which', ' one?"], "steps": []}'])
    answer = written(step("a"), gates.began["a"], step("b"))
    b = bench_of(ask, answer, work=works("a", "b"), tools=[gates.tool()])
    await b.run(ctx=on())
    assert gates.runs == []
    out = await b.go_on(Command(resume={"answers": {"1": "the first"}}))
    assert out["status"] == "completed"
    assert sorted(gates.runs) == ["a", "b"]


async def test_an_invalid_plan_that_ends_in_questions_keeps_its_evidence_for_the_next_one() -> None:
    gates = Gates("a", "b")
    wrong = written(step("a"), gates.began["a"], step("b", "ghost"))
    ask = Stream(['{"questions": ["Which one?"], "steps": []}'])
    b = bench_of(wrong, ask, written(step("a"), step("b", "a")), work=works("a", "b"), tools=[gates.tool()])
    await b.run(ctx=on())
    out = await b.go_on(Command(resume={"answers": {"1": "the first"}}))
    assert out["status"] == "completed"
    assert gates.runs == ["a", "b"]
    assert out["usage"].tool_calls == 2


async def test_an_invalid_plan_is_asked_again_and_what_ran_does_not_run_again() -> None:
    gates = Gates("a", "b")
    wrong = written(step("a"), gates.ended["a"], step("b", "ghost"))
    b = bench_of(wrong, written(step("a"), step("b", "a")), work=works("a", "b"), tools=[gates.tool()])
    out = await run(b, gates, on())
    assert out["status"] == "completed"
    assert gates.runs == ["a", "b"]
    assert [p.version for p in (await b.values())["plans"]] == [1]
    assert out["usage"].tool_calls == 2


async def test_a_plan_that_stays_invalid_keeps_what_was_found_and_says_so() -> None:
    gates = Gates("a")
    wrong = [written(step("a"), gates.ended["a"], step("b", "ghost")) for _ in range(3)]
    b = bench_of(*wrong, work=works("a"), tools=[gates.tool()], writer=AIMessage("Text about a [1]."))
    out = await run(b, gates, on())
    assert (out["status"], out["stop_reason"], out["plan"]) == ("partial", "plan_invalid", None)
    assert "Text about a [1]" in out["final_answer"]
    assert "ghost" in out["final_answer"]
    assert [(e.step_id, e.passed, e.plan_version) for e in out["evidence"]] == [("a", True, 1)]
    assert [s.id for s in out["sources"]] == ["s-a"]
    assert (out["usage"].tool_calls, gates.runs) == (1, ["a"])


async def test_a_step_at_work_when_the_plan_turns_out_invalid_is_finished() -> None:
    gates = Gates("a", held=("a",))

    def last(_: Any) -> AIMessage:
        gates.open["a"].set()
        return AIMessage("no")

    wrong = written(step("a"), gates.began["a"], step("b", "ghost"))
    b = bench_of(wrong, AIMessage("no"), last, work=works("a"), tools=[gates.tool()])
    out = await b.run(ctx=on())
    assert out["stop_reason"] == "plan_invalid"
    assert of(out, "a").passed


async def test_a_re_asked_plan_without_the_step_keeps_its_evidence_and_its_source_may_be_cited() -> None:
    gates = Gates("a", "b")
    wrong = written(step("a"), gates.ended["a"], step("b", "ghost"))
    writer = AIMessage("Text about a [1]. Text about b [2].")
    b = bench_of(wrong, written(step("b")), work=works("a", "b"), tools=[gates.tool()], writer=writer)
    out = await run(b, gates, on())
    assert out["status"] == "completed"
    assert [(p.version, p.parent_version, [s.id for s in p.steps]) for p in (await b.values())["plans"]] == [
        (1, None, ["a"]),
        (2, 1, ["b"]),
    ]
    assert {e.step_id: e.plan_version for e in out["evidence"]} == {"a": 1, "b": 2}
    assert {s.id for s in out["sources"]} == {"s-a", "s-b"}
    assert "Text about a [1]" in out["final_answer"]


async def test_a_step_of_another_content_gets_another_id_and_so_does_what_is_behind_it() -> None:
    gates = Gates("a", "b", "a.2", "b.2")
    wrong = written(step("a"), step("b", "a"), gates.ended["b"], step("c", "ghost"))
    right = written(step("a", task="do it otherwise"), step("b", "a"))
    # The criteria keep the words of the first ids.
    again = {f"{i}.2": [look(query=f"{i}.2"), finding(i, f"s-{i}.2")] for i in ("a", "b")}
    b = bench_of(wrong, right, work=works("a", "b") | again, tools=[gates.tool()])
    out = await run(b, gates, on())
    assert [[(s.id, s.depends_on) for s in p.steps] for p in (await b.values())["plans"]] == [
        [("a", []), ("b", ["a"])],
        [("a.2", []), ("b.2", ["a.2"])],
    ]
    assert gates.runs == ["a", "b", "a.2", "b.2"]
    assert {e.step_id: e.plan_version for e in out["evidence"]} == {"a": 1, "b": 1, "a.2": 2, "b.2": 2}
    assert out["status"] == "completed"


async def test_a_failed_step_that_the_plan_no_longer_has_leaves_no_gap() -> None:
    gates = Gates("a", "b")
    wrong = written(step("a"), gates.ended["a"], step("b", "ghost"))
    work = {"a": [look(query="a"), finding("a", "s-a", met=False)], **works("b")}
    b = bench_of(wrong, written(step("b")), work=work, tools=[gates.tool()])
    out = await run(b, gates, on())
    assert (out["status"], out["review"].gaps) == ("completed", [])
    assert not of(out, "a").passed


async def test_invariant_05_a_step_that_the_plan_drops_is_stopped_and_its_tool_runs_count() -> None:
    gates = Gates("a", "b", held=("a",))
    wrong = written(step("a"), gates.began["a"], step("b", "ghost"))
    work = {"a": [look(query="a")], **works("b")}
    b = bench_of(wrong, written(step("b")), work=work, tools=[gates.tool()])
    out = await b.run(ctx=on())
    assert (of(out, "a").error_type, of(out, "a").passed) == ("cancelled", False)
    assert (of(out, "a").tool_calls, out["usage"].tool_calls) == (1, 2)
    assert out["usage"].by_role["worker"]["ScriptedModel"].model_calls == 3
    assert out["status"] == "completed"


async def test_invariant_05_steps_that_start_early_reserve_from_the_run_s_budget() -> None:
    gates = Gates("a", "b", "c")
    # Two runs for the whole run: a and b may have one each, c has to wait for what they leave, which is nothing.
    steps = [step(i, tool_budget=1) for i in ("a", "b", "c")]
    answer = written(*steps, gates.began["a"], gates.began["b"])
    work = works("a", "b") | {"c": [finding("c")]}
    b = bench_of(answer, work=work, tools=[gates.tool()])
    out = await b.run(ctx=on(total_tool_budget=2, max_replans=0))
    assert sorted(gates.runs) == ["a", "b"]
    assert out["usage"].tool_calls == 2
    assert of(out, "c").error_type == "tool_budget"


async def test_a_step_that_could_only_get_a_part_of_its_budget_waits_for_the_whole_plan() -> None:
    gates = Gates("a")
    b = bench_of(written(step("a", tool_budget=4)), work=works("a"), tools=[gates.tool()])
    assert starts_late(await kinds_of(b, on(total_tool_budget=2, max_replans=0)), "a")


async def test_max_parallel_steps_holds_while_the_plan_is_written() -> None:
    gates = Gates("a", "b", held=("a",))
    answer = written(step("a"), gates.began["a"], step("b"), gates.open["a"].set)
    b = bench_of(answer, work=works("a", "b"), tools=[gates.tool()])
    out = await b.run(ctx=on(max_parallel_steps=1))
    assert of(out, "a").finished_at <= of(out, "b").started_at


async def test_a_stream_that_breaks_half_way_is_asked_again_and_nothing_runs_twice() -> None:
    gates = Gates("a", "b")
    broken = written(step("a"), gates.began["a"], ConnectionError("gone"), step("b"))
    b = bench_of(broken, written(step("a"), step("b", "a")), work=works("a", "b"), tools=[gates.tool()])
    out = await b.run(ctx=on())
    assert out["status"] == "completed"
    assert gates.runs == ["a", "b"]


async def test_a_stream_that_breaks_for_good_keeps_what_was_found() -> None:
    gates = Gates("a")
    broken = written(step("a"), gates.ended["a"], ValueError("nonsense"), step("b"))
    b = bench_of(broken, work=works("a"), tools=[gates.tool()])
    out = await run(b, gates, on())
    assert (out["status"], out["stop_reason"]) == ("partial", "model_unavailable")
    assert of(out, "a").passed


async def test_a_planner_that_cannot_stream_is_asked_in_the_ordinary_way() -> None:
    gates = Gates("a", "b")
    b = bench_of(written(step("a"), step("b")), streams=False, work=works("a", "b"), tools=[gates.tool()])
    assert starts_late(await kinds_of(b, on()), "a", "b")
    plain = bench(planner=ScriptedModel(answers=[plan(step("a"))]), work=works("a"), tools=[gates.tool()])
    assert (await plain.run(ctx=on()))["status"] == "completed"


async def test_a_planner_that_cannot_stream_is_not_asked_more_often_for_it() -> None:
    errors = [Refused("no"), Refused("no")]
    b = bench(planner=ScriptedModel(answers=errors), work={}, tools=[])
    assert (await b.run(ctx=on()))["stop_reason"] == "model_unavailable"
    assert len(b.planner.asked) == 1
    wrong = [AIMessage("no plan")] * 3
    b = bench_of(*wrong, work={}, tools=[])
    assert (await b.run(ctx=on()))["stop_reason"] == "plan_invalid"
    assert len(b.planner.asked) == 3


class Refused(Exception):
    """What a client raises for status 400."""

    status_code = 400


class RefusesToStream(StreamingModel):
    """A provider that answers, but refuses stream=true."""

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        raise Refused("streaming is not allowed for this organization")
        yield

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return RefusesToStream(bound=["Plan"], shared=self)


async def test_a_provider_that_refuses_to_stream_is_asked_in_the_ordinary_way() -> None:
    gates = Gates("a")
    planner = RefusesToStream(answers=[written(step("a"))])
    b = bench(planner=planner, work=works("a"), tools=[gates.tool()])
    out = await b.run(ctx=on())
    assert out["status"] == "completed"
    assert sum(part.model_calls for part in out["usage"].by_role["planner"].values()) == 2


async def test_a_plan_that_is_too_long_is_not_let_in_by_the_back_door() -> None:
    gates = Gates("a", "b", "c")
    long = written(step("a"), gates.began["a"], step("b"), gates.began["b"], step("c"))
    b = bench_of(long, written(step("a"), step("b")), work=works("a", "b", "c"), tools=[gates.tool()])
    out = await b.run(ctx=on(max_plan_steps=2))
    assert out["status"] == "completed"
    assert gates.runs == ["a", "b"]


async def test_after_a_step_that_is_not_valid_nothing_of_that_answer_starts() -> None:
    gates = Gates("a", "b")
    wrong = written(step("a", tools=["ghost"]), step("b"))
    b = bench_of(wrong, written(step("a")), work=works("a", "b"), tools=[gates.tool()])
    out = await b.run(ctx=on())
    assert gates.runs == ["a"]
    assert out["status"] == "completed"


async def test_steps_that_a_valid_plan_makes_ready_do_not_wait_for_slower_ones() -> None:
    gates = Gates("slow", "a", "b", held=("slow",))
    gates.open["slow"] = gates.began["b"]  # slow ends only when b has begun, which depends on a alone
    answer = written(step("slow"), step("a"), gates.began["a"], step("b", "a"))
    b = bench_of(answer, work=works("slow", "a", "b"), tools=[gates.tool()])
    assert (await b.run(ctx=on()))["status"] == "completed"


async def test_invariant_02_a_step_that_asks_a_person_is_handed_over_and_asks_outside_the_planning() -> None:
    gates = Gates("b")

    def asks(query: str) -> Any:
        """Look something up, and ask a person."""
        gates.runs.append(query)
        word = interrupt({"kind": "own"})
        return [{"source_id": "s-a", "text": f"text about a: {word}"}]

    own = StructuredTool.from_function(asks, name="own", metadata={"idempotent": True})
    work = {
        "a": [look(query="a", tool="own"), look(query="a", tool="own"), finding("a", "s-a")],
        **works("b"),
    }
    answer = written(step("a", tools=["own"]), step("b", tools=["look"]), gates.began["b"])
    b = bench_of(answer, work=work, tools=[gates.tool(), own])
    paused = await b.run(ctx=on())
    assert [i.value["kind"] for i in paused["__interrupt__"]] == ["own"]
    out = await b.go_on(Command(resume="yes"))
    assert len(b.planner.asked) == 1
    assert out["status"] == "completed"
    assert out["usage"].by_role["worker"]["ScriptedModel"].model_calls == len(b.worker.asked)
    assert out["usage"].tool_calls == 2  # a call that stops to ask does not count, as ever


async def test_a_chinese_plan_streams_character_by_character() -> None:
    gates = Gates("甲-1", "b")
    first = step("a", task="查找“甲”的价格：{单价}、[折扣]", success_criteria=["已知价格"])
    criteria = [{"criterion": "已知价格", "met": True, "reason": "有"}]
    found = finding("a", "s-甲-1", criteria=criteria)
    work = {"a": [look(query="甲-1"), found], **works("b")}
    answer = written(first, gates.began["甲-1"], step("b"), goal="比较价格")
    pieces = [p for part in answer.pieces for p in (part if isinstance(part, str) else [part])]
    b = bench_of(Stream(pieces), work=work, tools=[gates.tool()])
    out = await b.run("比较甲与乙的价格，并给出建议", ctx=on())
    assert out["status"] == "completed"
    assert of(out, "a").passed


def answers_of(gates: Gates, *, stream: bool) -> list[Any]:
    gate = [gates.began["a"]] if stream else []
    a, b, c = (step(i, *needs, tools=["look"]) for i, *needs in (("a",), ("b",), ("c", "a", "b")))
    wrong = written(a, *gate, step("b", "ghost"))
    return [wrong, written(a, b, c, step("w", "c", tools=["put"]))]


def timeless(value: Any) -> Any:
    """Return JSON values without times."""
    if isinstance(value, dict):
        return {
            k: timeless(v)
            for k, v in value.items()
            if k not in ("started_at", "finished_at", "retrieved_at", "seconds")
        }
    if isinstance(value, list):
        return [timeless(v.model_dump(mode="json") if hasattr(v, "model_dump") else v) for v in value]
    return value


async def test_the_result_is_the_same_as_without_streaming(where: Kept) -> None:
    found: list[Any] = []
    for stream in (True, False):
        gates, writes = Gates("a", "b", "c"), Gates("w")
        b = bench_of(
            *answers_of(gates, stream=stream),
            work=works("a", "b", "c") | works("w", tool="put"),
            tools=[gates.tool(), writes.tool("put", permission="write")],
            **built_on(where),
        )
        await b.run(thread=f"t-{stream}", ctx=context(stream_plan=stream, autonomy="all"))
        values = await b.values(f"t-{stream}")
        names = ("plan", "review", "usage", "plans", "evidence", "sources", "status", "stop_reason")
        values = {name: values[name] for name in (*names, "final_answer", "max_replans")}
        found.append(timeless(list(values.values())))
    assert found[0] == found[1]
    assert "completed" in found[0]


async def test_invariant_19_a_step_that_starts_early_is_announced_as_ever() -> None:
    gates = Gates("a")
    b = bench_of(written(step("a"), gates.began["a"]), work=works("a"), tools=[gates.tool()])
    kinds = [kind for kind in await kinds_of(b, on()) if kind.endswith(" a")]
    assert kinds == ["step_ready a", "step_started a", "tool_started a", "tool_finished a", "step_finished a"]


async def test_each_version_of_the_plan_is_announced_once() -> None:
    gates = Gates("a", "b")
    wrong = written(step("a"), gates.began["a"], step("b", "ghost"))
    b = bench_of(wrong, written(step("b")), work=works("a", "b"), tools=[gates.tool()])
    assert [e.version for e in await events_of(b, on()) if isinstance(e, PlanReady)] == [2]


async def test_invariant_14_a_second_run_on_the_thread_starts_clean() -> None:
    gates = Gates("a", "b")
    answers = (written(step(i), gates.began[i]) for i in ("a", "b"))
    b = bench_of(*answers, work=works("a", "b"), tools=[gates.tool()])
    await b.run(ctx=on())
    out = await b.run("another", ctx=on())
    assert [e.step_id for e in out["evidence"]] == ["b"]
    assert out["usage"].tool_calls == 1
    assert [p.version for p in (await b.values())["plans"]] == [1]


async def test_what_a_model_thinks_before_its_answer_starts_nothing() -> None:
    gates = Gates("a", "b")
    answer = written(step("a"), gates.began["a"], form="text")
    thought = f"<think>Maybe {written(step('b')).text}</think>"
    b = bench_of(Stream([thought, *answer.pieces], "text"), work=works("a", "b"), tools=[gates.tool()])
    out = await b.run(ctx=on())
    assert gates.runs == ["a"]
    assert out["status"] == "completed"


async def test_time_in_which_planner_and_steps_worked_together_counts_once() -> None:
    gates, seconds = Gates("a"), [0.0]

    async def slow(query: str) -> Any:
        """Look something up for 50 seconds."""
        seconds[0] += 50
        gates.began[query].set()
        return [{"source_id": "s-a", "text": "text about a"}]

    tool = StructuredTool.from_function(coroutine=slow, name="look")
    parts = {"clock": lambda: seconds[0]}
    b = bench_of(written(step("a"), gates.began["a"]), work=works("a"), tools=[tool], parts=parts)
    out = await b.run(ctx=on())
    assert active_seconds(out["evidence"], out["usage"]) == pytest.approx(50)


async def test_a_run_that_is_stopped_while_the_planner_writes_goes_on_without_running_anything_twice() -> (
    None
):
    gates, never = Gates("a", "b", "c"), asyncio.Event()
    first = written(step("a"), gates.began["a"], step("b", "a"), gates.began["b"], never)
    second = written(step("a"), step("c", "a"))
    work = works("a", "c") | {"b": [look(query="b"), finding("b", "s-b")]}
    b = bench_of(first, second, work=work, tools=[gates.tool()])
    done = asyncio.Event()

    async def until_b_is_done() -> None:
        stream = b.graph.astream({"objective": "find it"}, config(), context=on(), stream_mode="custom")
        async for event in stream:
            if event["type"] == "step_finished" and event["step_id"] == "b":
                done.set()

    run = asyncio.create_task(until_b_is_done())
    await asyncio.wait_for(done.wait(), 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    seen = await b.values()
    assert {e.step_id for e in seen["evidence"]} == {"a", "b"}  # visible before there is a plan
    out = await b.go_on(None)
    assert gates.runs == ["a", "b", "c"]
    assert {e.step_id: (e.passed, e.plan_version) for e in out["evidence"]} == {
        "a": (True, 2),
        "b": (True, 1),
        "c": (True, 2),
    }
    assert (out["status"], out["usage"].tool_calls) == ("completed", 3)


async def test_a_step_of_another_content_after_a_stop_does_not_go_on_with_the_first_one_s_work() -> None:
    gates, never = Gates("a", "a.2", held=("a",)), asyncio.Event()
    first = written(step("a"), gates.began["a"], gates.ended["a"], never)
    second = written(step("a", task="do it otherwise"))
    work = {"a": [look(query="a")], "a.2": [look(query="a.2"), finding("a", "s-a.2")]}
    b = bench_of(first, second, work=work, tools=[gates.tool(idempotent=True)])
    running = asyncio.create_task(run(b, gates, on()))
    await asyncio.wait_for(gates.began["a"].wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    out = await b.go_on(None)
    assert gates.runs == ["a", "a.2"]
    assert (of(out, "a").error_type, of(out, "a").tool_calls) == ("cancelled", 1)
    assert (of(out, "a.2").passed, out["usage"].tool_calls, out["status"]) == (True, 2, "completed")


async def test_invariant_05_what_an_earlier_life_has_reserved_is_not_given_to_others() -> None:
    gates, never = Gates("a", "b", "b2", held=("a",)), asyncio.Event()
    one = {"tool_budget": 2}
    first = written(step("a", **one), gates.began["a"], never)
    # The resumed planner has b alone: of three runs one may have been made by a, and another is still reserved for it.
    second = written(step("b", **one), gates.open["b"].set)
    work = {"a": [look(query="a")], "b": [look(query="b"), look("c2", query="b2"), finding("b", "s-b")]}
    b = bench_of(first, second, work=work, tools=[gates.tool(idempotent=True)])
    running = asyncio.create_task(run(b, gates, on(total_tool_budget=3)))
    await asyncio.wait_for(gates.began["a"].wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    kinds = [e["type"] async for e in b.graph.astream(None, config(), stream_mode="custom")]
    assert kinds.index("plan_ready") < kinds.index("step_started")  # not before it is known that a is gone
    assert len(gates.runs) == (await b.values())["usage"].tool_calls == 3


async def test_a_step_that_writes_waits_only_for_steps_that_were_at_work_when_it_became_ready() -> None:
    gates, writes = Gates("a", "x", "r", held=("x", "r")), Gates("w")
    gates.open["r"] = writes.began[
        "w"
    ]  # r ends only when w has begun: were r run before w, neither would end
    reads: Any = {"tools": ["look"]}
    steps = (step("a", **reads), step("x", **reads), step("r", "x", **reads), step("w", "a", tools=["put"]))
    b = bench_of(
        written(*steps, gates.ended["a"], gates.began["x"]),
        work=works("a", "x", "r") | works("w", tool="put"),
        tools=[gates.tool(), writes.tool("put", permission="write")],
    )
    task: Any = {"objective": "find it"}
    async for event in b.graph.astream(task, config(), context=on(autonomy="all"), stream_mode="custom"):
        gates.follow(event)
        if event["type"] == "plan_ready":
            gates.open["x"].set()
    out = await b.values()
    assert out["status"] == "completed"
    assert of(out, "r").passed


async def test_a_step_that_has_failed_does_not_run_again_because_the_plan_has_dropped_another_one() -> None:
    gates = Gates("a", "x", "b")
    wrong = written(step("a"), step("x"), gates.ended["a"], gates.ended["x"], step("c", "ghost"))
    failed = {"a": [look(query="a"), finding("a", "s-a", met=False)]}
    work = failed | works("x", "b")
    b = bench_of(wrong, written(step("a"), step("b")), work=work, tools=[gates.tool()])
    out = await run(b, gates, on(max_replans=0))
    assert sorted(gates.runs) == ["a", "b", "x"]
    found = {e.step_id: (e.passed, e.attempt, e.plan_version) for e in out["evidence"]}
    assert found == {"a": (False, 1, 2), "x": (True, 1, 1), "b": (True, 1, 2)}
    assert out["status"] == "partial"


async def test_a_step_behind_one_of_an_earlier_round_survives_a_stop() -> None:
    gates, never = Gates("a", "b", "c"), asyncio.Event()
    wrong = written(step("a"), gates.ended["a"], step("x", "ghost"))
    ask = Stream(['{"questions": ["Which one?"], "steps": []}'])
    stopped = written(step("a"), step("b", "a"), gates.ended["b"], never)
    last = written(step("c"))
    b = bench_of(wrong, ask, stopped, last, work=works("a", "b", "c"), tools=[gates.tool()])
    await run(b, gates, on())

    async def answered() -> None:
        given: Any = Command(resume={"answers": {"1": "the first"}})
        async for event in b.graph.astream(given, config(), stream_mode="custom"):
            gates.follow(event)

    running = asyncio.create_task(answered())
    await asyncio.wait_for(gates.ended["b"].wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    out = await b.go_on(None)
    assert (out["status"], gates.runs) == ("completed", ["a", "b", "c"])
    assert out["usage"].tool_calls == 3
    assert {e.step_id for e in out["evidence"] if e.passed} == {"a", "b", "c"}
