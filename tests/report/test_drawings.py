"""The plan graph and the timeline."""

import re
from datetime import timedelta

import pytest

from cli.report_graph import MARKS, plan_graph
from cli.report_timeline import scale, timeline
from cli.texts import Texts
from schemas.plan import Plan
from schemas.state import latest
from tests.report.hostile import START, hostile_values, plain_evidence

EN = Texts("en")


def _plan(*steps: tuple[str, list[str]]) -> Plan:
    items = [{"id": i, "task": "do", "success_criteria": ["done 1"], "depends_on": d} for i, d in steps]
    return Plan.model_validate({"goal": "g", "steps": items})


def test_states_differ_by_mark_and_shape_not_by_colour_alone():
    values = hostile_values()
    drawn = plan_graph(values["plan"], latest(values["evidence"]), EN)
    wide = drawn[: drawn.index("graph narrow")]
    for state in ("passed", "failed", "skipped"):
        assert f'class="step {state}"' in wide
        assert f"{MARKS[state]} {state}" in wide
    assert len(set(re.findall(r'rx="(\d)"', wide))) == 3


def test_every_dependency_is_an_arrow_in_both_drawings():
    plan = _plan(("a", []), ("b", ["a"]), ("c", ["a", "b"]))
    drawn = plan_graph(plan, {}, EN)
    wide, narrow = drawn.split('<div class="graph narrow">')
    assert wide.count('class="edge"') == narrow.count('class="edge"') == 3


def test_a_long_chain_is_drawn_down_the_page_and_not_across_it():
    names = [f"s{n}" for n in range(20)]
    plan = _plan(*((name, [names[n - 1]] if n else []) for n, name in enumerate(names)))
    drawn = plan_graph(plan, {}, EN)
    assert 'viewBox="0 0 9' not in drawn
    assert "graph only" in drawn


def test_a_step_waits_from_the_end_of_its_dependency_to_its_own_start():
    plan = _plan(("a", []), ("b", ["a"]))
    drawn = timeline([plan], [plain_evidence("a", 0, 4), plain_evidence("b", 6, 2)], EN)
    assert '<line class="wait" x1="50.00%" x2="75.00%"' in drawn


def test_a_pause_longer_than_the_work_is_shortened_and_named():
    night = 8 * 3600
    ran = [plain_evidence("a", 0, 5), plain_evidence("b", night, 5)]
    at, pauses = scale(ran)
    assert len(pauses) == 1
    assert at(START + timedelta(seconds=5)) > 0.3
    assert at(START + timedelta(seconds=night)) < 0.7
    times = [at(START + timedelta(seconds=s)) for s in (0, 3, 5, 100, night, night + 5)]
    assert times == sorted(times)
    assert (times[0], times[-1]) == pytest.approx((0.0, 1.0))
    drawn = timeline([_plan(("a", []), ("b", ["a"]))], ran, EN)
    assert f"nothing ran for {night - 5} s" in drawn


def test_without_any_work_there_is_no_timeline():
    assert timeline([], [plain_evidence("a", 0, 0)], EN) == ""
