"""A generated folder: documents on a few invented entities, with planted facts, holes and near misses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.honesty_words import (
    ASIDE,
    ATTRIBUTES,
    ENTITIES,
    FILLERS,
    LANGUAGES,
    OBJECTIVE,
    TITLES,
    Attribute,
    Language,
    fresh,
    listed,
)

HOLES = 0.35  # share of the slots that no document answers


@dataclass(frozen=True)
class Slot:
    """One attribute of one entity: a fact, or a hole."""

    entity: str
    attribute: Attribute

    def is_named(self, text: str, language: Language) -> bool:
        """Return whether a text speaks of this attribute of this entity."""
        said = text.casefold()
        label = self.attribute.label[language].split()
        return self.entity.casefold() in said and all(word in said for word in label)


@dataclass
class World:
    """A folder and what is asked of it.

    Attributes:
        asked: what the objective asks for, of every entity.
        facts: planted value of each slot that has one, those not asked for included.
        holes: asked slots that no document answers; near: what stands in their place.
        pages: texts by path below the folder.
        taken: every value in use, so that an invented one is like no other.
    """

    language: Language
    entities: list[str]
    asked: list[Attribute]
    facts: dict[Slot, str] = field(default_factory=dict[Slot, str])
    holes: list[Slot] = field(default_factory=list[Slot])
    near: dict[Slot, str] = field(default_factory=dict[Slot, str])
    pages: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[str] = field(default_factory=set[str])

    @property
    def objective(self) -> str:
        """What is asked of the folder."""
        labels = [attribute.label[self.language] for attribute in self.asked]
        return OBJECTIVE[self.language].format(
            listed(self.entities, self.language), listed(labels, self.language)
        )

    @property
    def slots(self) -> list[Slot]:
        """Everything that is asked for."""
        return [Slot(entity, attribute) for entity in self.entities for attribute in self.asked]

    @property
    def asked_facts(self) -> dict[Slot, str]:
        """What is asked for and stands in the documents."""
        return {slot: self.facts[slot] for slot in self.slots if slot in self.facts}

    def elsewhere(self, slot: Slot) -> str | None:
        """Return another entity's value of the same attribute, if one has it."""
        others = (Slot(entity, slot.attribute) for entity in self.entities if entity != slot.entity)
        return next((self.facts[other] for other in others if other in self.facts), None)

    def write(self, folder: Path) -> None:
        """Write the documents below a folder."""
        for name, text in self.pages.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def make_world(seed: int, number: int, asked: Sequence[Attribute] = ()) -> World:
    """Make the world of one objective: English for even numbers, Chinese for odd ones.

    Args:
        seed: of everything random.
        number: of the objective.
        asked: what is asked for; () = two or three attributes at random.
    """
    rng = Random(f"{seed}-{number}")
    language = LANGUAGES[number % 2]
    entities = rng.sample(ENTITIES[language], rng.randint(3, 5))
    asked = asked or rng.sample(ATTRIBUTES, rng.randint(2, 3))
    world = World(language, entities, list(asked))
    every = [Slot(entity, attribute) for entity in entities for attribute in ATTRIBUTES]
    empty = {slot for slot in every if rng.random() < HOLES}
    empty = (empty | {world.slots[0]}) - {world.slots[-1]}  # a hole and a fact at least
    for slot in every:
        if slot not in empty:
            world.facts[slot] = fresh(slot.attribute, language, rng, world.taken)
    world.holes = [slot for slot in world.slots if slot in empty]
    for place, slot in enumerate(world.holes):
        near = ("denied", "other", "silent")[(place + number) % 3]
        world.near[slot] = near if near != "other" or world.elsewhere(slot) else "silent"
    for entity in entities:
        for page in TITLES:
            world.pages[f"{entity}/{page}.md"] = _page(world, entity, page, rng)
    return world


def _page(world: World, entity: str, page: str, rng: Random) -> str:
    language = world.language
    lines = [_line(world, Slot(entity, a)) for a in ATTRIBUTES if a.page == page]
    for pattern in rng.sample(FILLERS[language], 2):
        number = rng.choice([n for n in range(110, 890) if str(n) not in world.taken])
        world.taken.add(str(number))
        lines.append(pattern.format(n=number, m=rng.randint(1, 9), d=rng.randint(0, 9)))
    kept = [line for line in lines if line]
    rng.shuffle(kept)
    colon = ": " if language == "en" else "："
    return "\n\n".join([f"# {entity}{colon}{TITLES[page][language]}", *kept]) + "\n"


def _line(world: World, slot: Slot) -> str:
    """Return what the documents say of a slot: the fact, a near miss, or nothing."""
    language, attribute = world.language, slot.attribute
    if slot in world.facts:
        return attribute.say(language, slot.entity, world.facts[slot])
    near = world.near.get(slot)
    if near == "denied":
        return attribute.denied[language].format(e=slot.entity)
    value = world.elsewhere(slot)
    if near == "other" and value:
        owner = next(s.entity for s, v in world.facts.items() if v == value and s.attribute == attribute)
        return ASIDE[language].format(attribute.say(language, owner, value))
    return ""
