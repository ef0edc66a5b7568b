"""``troyproxy doctor``: what a gateway leans on, one line each, with the remedy."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from troyproxy.cli.commands import CONFIG, JSON
from troyproxy.cli.examination import examine
from troyproxy.cli.output import print_json, print_table
from troyproxy.cli.session import run
from troyproxy.errors import TroyError


class Unhealthy(TroyError):
    """A check failed."""


def doctor(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Check configuration, database, migrations, clock and providers. Status 1 when something is wrong.

    \b
    Example:
      troyproxy doctor
    """
    findings = run(examine(config))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = (("ok" if f.ok else "FAILED", f.what, f.found, f.remedy) for f in findings)
        print_table(("", "what", "found", "remedy"), rows)
    failed = [finding.what for finding in findings if not finding.ok]
    if failed:
        raise Unhealthy(f"not well: {', '.join(failed)}")
