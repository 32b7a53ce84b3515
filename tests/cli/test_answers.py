import pytest

from cli.answers import chosen, read_answer
from cli.texts import Texts
from schemas.errors import InputError, NothingToResume
from schemas.events import Paused

SAY = Texts("en")


def asked(kind: str, number: int = 0) -> Paused:
    value = {"kind": kind, "step_id": f"s{number}", "tool": "save"}
    return Paused(interrupt_id=f"{number:032x}"[::-1], question=value)


@pytest.mark.parametrize(
    ("kind", "words", "answer"),
    [
        ("tool_approval", "approve", {"decision": "approve"}),
        ("tool_approval", "always", {"decision": "approve", "always": True}),
        ("tool_approval", "reject not now", {"decision": "reject", "reason": "not now"}),
        ("tool_approval", 'edit {"path": "b"}', {"decision": "edit", "arguments": {"path": "b"}}),
        ("escalate", "accept", {"decision": "accept"}),
        (
            "escalate",
            "extend tokens=100 steps=2",
            {"decision": "extend", "tokens": 100, "steps": 2},
        ),
        (
            "escalate",
            "extend tool_calls=5 seconds=1.5",
            {"decision": "extend", "tool_calls": 5, "seconds": 1.5},
        ),
        ("escalate", "hint look in the archive", {"decision": "hint", "hint": "look in the archive"}),
        ("clarify", "north 2024", {"answers": ["north", "2024"]}),
        ("approve", "approve", {"decision": "approve"}),
        ("approve", "revise use less", {"decision": "revise", "feedback": "use less"}),
        ("other", '{"any": [1]}', {"any": [1]}),
        ("escalate", '{"decision": "stop"}', {"decision": "stop"}),
    ],
)
def test_words_become_the_answer_that_the_question_takes(
    kind: str, words: str, answer: dict[str, object]
) -> None:
    assert read_answer(asked(kind), words.split(" "), SAY) == answer


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("tool_approval", "yes please"),
        ("tool_approval", "approve not"),
        ("tool_approval", "approve it only if it is safe"),
        ("tool_approval", "edit"),
        ("escalate", "extend"),
        ("escalate", "extend tool_calls=-1"),
        ("escalate", "extend tool_calls=1.5"),
        ("escalate", "extend seconds=nan"),
        ("escalate", "hint"),
        ("approve", "not yet"),
        ("approve", "revise"),
        ("other", "words"),
        ("tool_approval", "{broken"),
    ],
)
def test_what_fits_no_answer_is_refused_and_never_a_yes(kind: str, words: str) -> None:
    with pytest.raises(InputError):
        read_answer(asked(kind), words.split(" "), SAY)


def test_a_question_is_named_by_the_beginning_of_its_id_where_there_are_several() -> None:
    questions = [asked("tool_approval", 0x1234), asked("tool_approval", 0x9876)]
    assert chosen(questions, "6789", "t", SAY) is questions[1]
    assert chosen(questions[:1], None, "t", SAY) is questions[0]
    for named in (None, "67", "ffff"):
        with pytest.raises(InputError, match=r"43210000 \(s4660 save\), 67890000"):
            chosen(questions, named, "t", SAY)
    with pytest.raises(NothingToResume):
        chosen([], None, "t", SAY)
