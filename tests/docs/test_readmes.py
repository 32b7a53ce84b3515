"""The two READMEs name the same commands; the Python example of the README runs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def commands(name: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.startswith("$ ")]
    return [" ".join(re.sub(r"\s+#.*", "", line).split()) for line in found]


def test_both_readmes_show_the_same_commands():
    assert commands("README.md") == commands("README.zh-CN.md")
    assert len(commands("README.md")) >= 8


def test_the_python_example_of_the_readme_runs(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    script = code[1].replace('Path("examples/churn")', f"Path({str(ROOT / 'examples/churn')!r})")
    env = {"PATH": "/usr/bin:/bin", "PLANWEAVE_HOME": str(tmp_path / "home"), "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("completed")
    assert "('plan',)" in run.stdout
