"""The project that the demo of parallel reading runs on is a real one: its tests pass, and its README is long enough."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "examples" / "project"


def test_its_own_tests_pass():
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *options],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_command_answers_as_the_readme_says():
    lines = (PROJECT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 80
    at = next(number for number, line in enumerate(lines) if line.startswith("    $ ferrytimes"))
    arguments = lines[at].split()[2:]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "ferrytimes.cli", *arguments],
        cwd=PROJECT,
        env={"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [line.strip() for line in lines[at + 1 : at + 4]]


def test_what_its_readme_names_exists():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    layout = readme.partition("## Layout\n")[2].partition("Imports run")[0]
    paths = [line.split()[0] for line in layout.splitlines() if line.strip()]
    assert len(paths) >= 6
    assert all((PROJECT / path).exists() for path in paths)
