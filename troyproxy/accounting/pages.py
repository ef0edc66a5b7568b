"""Lists of requests, newest first, in pages: which are wanted, where a page ends, and two sources made one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from troyproxy.accounting.records import UsageRow


class Position(NamedTuple):
    """A place in the list. Requests are ordered by it, descending; with an empty id it is before all of its instant."""

    at: float
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which requests; what is None does not matter."""

    since: float | None = None
    """Unix seconds, itself included."""
    key: str | None = None
    """Id or name of the key."""
    model: str | None = None
    """As it was requested, or the model that served, with its provider or without."""
    status: int | None = None
    outcome: str | None = None

    @property
    def selective(self) -> bool:
        """Whether more than the time matters."""
        return any(each is not None for each in (self.key, self.model, self.status, self.outcome))

    def takes(self, row: UsageRow) -> bool:
        """Whether *row* is one of them."""
        return (
            (self.since is None or row.at >= self.since)
            and (self.key is None or self.key in {row.key_id, row.key_name})
            and (self.model is None or self.model in {row.requested_model, row.model, f"{row.provider}/{row.model}"})
            and (self.status is None or row.status == self.status)
            and (self.outcome is None or row.outcome == self.outcome)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, newest first. *end*: the next page lies before it; None: there is none."""

    rows: Sequence[UsageRow]
    end: Position | None


def position(row: UsageRow) -> Position:
    """Return the place of *row*."""
    return Position(row.at, row.request_id)


def merged(stored: Page, fresh: Iterable[UsageRow], *, before: Position | None, limit: int) -> Page:
    """Return the page that has *fresh* rows in their places too; where both have a row, the fresh one counts.

    *fresh* need not be sorted. Of it only what belongs on this page is taken: between *before* and the page's end.
    """
    rows = {row.request_id: row for row in stored.rows}
    for row in fresh:
        place = position(row)
        if (before is None or place < before) and (stored.end is None or place >= stored.end):
            rows[row.request_id] = row
    ordered = sorted(rows.values(), key=position, reverse=True)
    if len(ordered) <= limit:
        return Page(ordered, stored.end)
    return Page(ordered[:limit], position(ordered[limit - 1]))
