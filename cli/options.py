"""Arguments and options that several commands take. Help texts are keys of the catalogue."""

from pathlib import Path
from typing import Annotated

import typer

Thread = Annotated[str, typer.Argument(metavar="THREAD", help="help.thread_argument", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="help.json")]
OneJson = Annotated[bool, typer.Option("--json", help="help.json_one")]
Docs = Annotated[Path | None, typer.Option("--docs", metavar="DIR", help="help.docs")]
Root = Annotated[Path | None, typer.Option("--root", metavar="DIR", help="help.root")]
Yes = Annotated[bool, typer.Option("--yes", help="help.yes")]
Workspace = Annotated[Path | None, typer.Option("--workspace", metavar="DIR", help="help.workspace")]
Web = Annotated[bool, typer.Option("--web", help="help.web")]
Mcp = Annotated[Path | None, typer.Option("--mcp", metavar="FILE", help="help.mcp")]
Own = Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help="help.own")]
