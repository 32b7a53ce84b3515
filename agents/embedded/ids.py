"""Ids of the steps that the embedded model plans."""

import re
import unicodedata

SECOND_TRY = re.compile(r"-(\d+)$")


def new_id(name: str, taken: list[str]) -> str:
    """Return a step id made from a name, unlike all those taken, and add it to them.

    No id ends in a dash and digits, which is what a second try at a step looks like.
    """
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    base = re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:48].strip("-") or "find"
    base = base if re.match(r"[a-z0-9]", base) else f"step-{base}"
    base = f"{base}-a" if SECOND_TRY.search(base) else base
    used = {t.casefold() for t in taken}
    step_id, letters = (
        base,
        iter(f"{a}{b}" for a in "bcdefghijklmnopqrstuvwxyz" for b in ("", *"abcdefghijklmnopqrstuvwxyz")),
    )
    while step_id in used:
        step_id = f"{base}-{next(letters)}"
    taken.append(step_id)
    return step_id
