"""``troyproxy serve``: one process with one event loop, or a supervisor over several of them."""

from __future__ import annotations

from pathlib import Path

import typer

from troyproxy.cli.commands import CONFIG
from troyproxy.cli.configured import configured
from troyproxy.cli.serving import Serving
from troyproxy.cli.start import Start
from troyproxy.cli.supervisor import Supervisor


def serve(
    demo: bool = typer.Option(False, "--demo", help="Serve the demo provider and the combo 'demo' too."),
    host: str | None = typer.Option(None, help="Listen address; else TROY_HOST, else 127.0.0.1."),
    port: int | None = typer.Option(None, min=0, max=65535, help="Port (0: any); else TROY_PORT, else 31337."),
    workers: int = typer.Option(1, min=1, max=64, help="Processes that serve; about one for each core."),
    config: Path | None = CONFIG,
) -> None:
    """Start the gateway.

    Without any provider it starts in demo mode. SIGHUP reads the configuration again. SIGTERM stops it and lets
    requests in flight finish.

    \b
    Example:
      OPENAI_API_KEY=sk-... troyproxy serve --port 8080
    """
    options = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    start = Start(lambda: configured(config, options), demo=demo)
    if workers == 1:
        Serving(start).run()
    else:
        Supervisor(start, workers, config, options).run()
