"""Regular expressions that a model wrote: searched in a process of its own, which can be ended.

Python's `re` cannot be interrupted, and `(x+x+)+y` on a few hundred letters would outlast the run.
"""

import asyncio
import json
import re
import subprocess
import sys

MAX_SECONDS = 2.0
_LOOPS = frozenset("*+?{")
_SEARCH = "import json, re, sys; print(re.search(*json.load(sys.stdin)) is not None)"


async def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern is found in a text.

    Raises:
        re.error: the pattern is none.
        TimeoutError: the search took longer than MAX_SECONDS.
    """
    compiled = re.compile(pattern)
    if not _LOOPS & set(pattern):
        return compiled.search(text) is not None  # nothing in it can repeat: quick whatever the text
    return await asyncio.to_thread(_search, pattern, text)


def _search(pattern: str, text: str) -> bool:
    command = [sys.executable, "-I", "-S", "-c", _SEARCH]
    request = json.dumps([pattern, text])
    try:
        done = subprocess.run(
            command, input=request, capture_output=True, text=True, check=True, timeout=MAX_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the pattern took longer than {MAX_SECONDS:g} s") from None
    return done.stdout.strip() == "True"
