"""What every dashboard has: a stable uid, the variables, links to the others and to the runbook, rows of panels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from tests.dashboards.panels import RUNBOOK, SOURCE, Panel

TAG: Final = "troyproxy"
VARIABLES: Final[Mapping[str, str]] = {
    "instance": "label_values(troyproxy_build_info, instance)",
    "provider": 'label_values(troyproxy_cooldown_remaining_seconds{instance=~"$instance"}, provider)',
    "combo": 'label_values(troyproxy_requests_total{instance=~"$instance"}, combo)',
}
"""Variable → where its values come from; all of them are chosen at first."""


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard. *name* is the name of its file and the end of its uid."""

    name: str
    title: str
    what: str
    rows: Mapping[str, Sequence[Panel]]

    def json(self) -> str:
        """Return the file's text."""
        built = self._builder().build()
        for at, panel in enumerate(built.panels or (), start=1):
            panel.id_val = at
        return json.dumps(built, cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"

    def _builder(self) -> builders.Dashboard:
        board = builders.Dashboard(f"troyproxy: {self.title}").uid(f"troyproxy-{self.name}").description(self.what)
        board = board.tags([TAG]).time("now-3h", "now").refresh("30s").timezone("browser").editable().version(1)
        board = board.annotations([]).tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        for variable in (_datasource(), *(_variable(name, query) for name, query in VARIABLES.items())):
            board.with_variable(variable)
        for link in _links():
            board.link(link)
        for title, panels in self.rows.items():
            board.with_row(builders.Row(title))
            for panel in panels:
                board.with_panel(panel)
        return board


def _datasource() -> builders.DatasourceVariable:
    return builders.DatasourceVariable("datasource").label("Data source").type("prometheus")


def _variable(name: str, query: str) -> builders.QueryVariable:
    every = dashboard.VariableOption(text=["All"], value=["$__all"], selected=True)
    variable = builders.QueryVariable(name).label(name.capitalize()).datasource(SOURCE).query(query)
    variable = variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
    variable = variable.sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    return variable.multi(True).include_all(True).all_value(".*").current(every)


def _links() -> list[builders.DashboardLink]:
    others = builders.DashboardLink("Dashboards").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
    others = others.include_vars(True).keep_time(True).as_dropdown(False)
    runbook = builders.DashboardLink("Runbook").type(dashboard.DashboardLinkType.LINK).url(f"{RUNBOOK}#alerts")
    return [others, runbook.icon("doc").target_blank(True)]
