"""The kinds of panel that the dashboards are made of, on Grafana's own typed builders.

A panel has a title, what it says, a unit and its queries; everything else looks alike on every dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import common, dashboard, units
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE: Final = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")
RUNBOOK: Final = "https://github.com/troyproxy/troyproxy/blob/main/docs/operations.md"
GREEN, ORANGE, RED, GREY = "green", "orange", "red", "text"
Steps = Sequence[tuple[float | None, str]]
"""Thresholds: from this value on, this colour; the first one is for everything below."""
States = Mapping[int, tuple[str, str]]
"""Value → what it is called, and its colour."""
UNNAMED: Final[States] = {}
UP: Final[States] = {0: ("down", RED), 1: ("up", GREEN)}
Panel = timeseries.Panel | stat.Panel | table.Panel | statetimeline.Panel
Any_ = TypeVar("Any_", timeseries.Panel, stat.Panel, table.Panel, statetimeline.Panel)


@dataclass(frozen=True, slots=True)
class Look:
    """What the kinds of panel have in common. *w* of 24 columns, *h* rows; *alert*: where its runbook stands."""

    w: int = 12
    h: int = 8
    steps: Steps = ()
    alert: str | None = None


def number(
    title: str, query: str, what: str, *, unit: str = units.Short, states: States = UNNAMED, look: Look | None = None
) -> stat.Panel:
    """Return one number, now; it has the colour of its threshold, or is the word for its state."""
    panel = _drawn(stat.Panel(), title, what, look or Look(w=4, h=4))
    last = common_builders.ReduceDataOptions().calcs(["lastNotNull"])
    panel = panel.graph_mode(common.BigValueGraphMode.NONE).reduce_options(last).no_value("-").unit(unit)
    if states:
        panel = panel.mappings([_mapping(states)])
    return panel.with_target(_query(query, "").instant())


def lines(
    title: str, what: str, *queries: tuple[str, str], unit: str = units.Short, look: Look | None = None
) -> timeseries.Panel:
    """Return curves over time, from pairs of a query and the legend of what it finds."""
    look = look or Look()
    panel = _drawn(timeseries.Panel(), title, what, look).unit(unit).min(0).fill_opacity(10).line_width(1)
    legend = common_builders.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST).show_legend(True)
    panel = panel.legend(legend.placement(common.LegendPlacement.BOTTOM).calcs([]))
    panel = panel.tooltip(_tooltip()).show_points(common.VisibilityMode.NEVER)
    if look.steps:
        style = common_builders.GraphThresholdsStyleConfig().mode(common.GraphTresholdsStyleMode.DASHED)
        panel = panel.thresholds_style(style)
    for at, (query, name) in enumerate(queries):
        panel.with_target(_query(query, name, at).range().exemplar("_seconds_bucket" in query))
    return panel


def stacked(title: str, what: str, query: tuple[str, str], *, unit: str, look: Look | None = None) -> timeseries.Panel:
    """Return curves on top of each other: parts of a whole."""
    panel = lines(title, what, query, unit=unit, look=look).fill_opacity(40)
    return panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))


def listing(
    title: str, query: str, what: str, columns: Mapping[str, str], *, unit: str = units.Short, look: Look | None = None
) -> table.Panel:
    """Return a table of what *query* finds now. *columns*: label (or `Value`) → heading, in this order."""
    panel = _drawn(table.Panel(), title, what, look or Look()).unit(unit).decimals(0)
    panel.with_target(_query(query, "").instant().format(PromQueryFormat.TABLE))
    order = {"include": {"names": list(columns)}}
    named = {"renameByName": dict(columns), "indexByName": {name: at for at, name in enumerate(columns)}}
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="filterFieldsByName", options=order))
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=named))
    by = common_builders.TableSortByFieldState().display_name(list(columns.values())[-1]).desc(True)
    return panel.sort_by([by])


def timeline(
    title: str, query: tuple[str, str], what: str, states: States, *, look: Look | None = None
) -> statetimeline.Panel:
    """Return one bar for each series, in the colour of its state."""
    panel = _drawn(statetimeline.Panel(), title, what, look or Look())
    panel = panel.mappings([_mapping(states)]).show_value(common.VisibilityMode.NEVER)
    panel = panel.merge_values(True).row_height(0.8).fill_opacity(80).line_width(0)
    return panel.tooltip(_tooltip()).with_target(_query(*query).range())


def _drawn(panel: Any_, title: str, what: str, look: Look) -> Any_:
    panel = panel.title(title).description(what).datasource(SOURCE).span(look.w).height(look.h)
    if look.steps:
        steps = [dashboard.Threshold(value, color) for value, color in look.steps]
        panel = panel.thresholds(builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps))
    if look.alert is not None:
        link = builders.DashboardLink("Runbook").url(f"{RUNBOOK}#{look.alert}").target_blank(True)
        panel = panel.links([link.type(dashboard.DashboardLinkType.LINK)])
    return panel


def _mapping(states: States) -> dashboard.ValueMap:
    shown = enumerate(states.items())
    return dashboard.ValueMap(
        options={
            str(value): dashboard.ValueMappingResult(text, color, index=at) for at, (value, (text, color)) in shown
        }
    )


def _query(query: str, legend: str, at: int = 0) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(query).legend_format(legend).ref_id("ABCDEFGH"[at])


def _tooltip() -> common_builders.VizTooltipOptions:
    tooltip = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    return tooltip.sort(common.SortOrder.DESCENDING)
