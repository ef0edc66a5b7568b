"""What only the end of the content decides: markers left beside real calls, and closers that nothing opened."""

from __future__ import annotations

from troyproxy.leaks.evidence import Position, Suspect
from troyproxy.leaks.held import Held
from troyproxy.leaks.options import Options, Scope
from troyproxy.leaks.prose import Prose
from troyproxy.leaks.tail import residue


def shell(held: Held) -> Suspect | None:
    """Return what is held, if it is markers alone: beside real calls, that is what the server's parser left."""
    held.trim()
    row = residue(held.raw)
    return Suspect(Position.START, held.base, held.base, row, format=row.format or "F03") if row else None


def orphans(held: Held, prose: Prose, options: Options, *, started: bool) -> Suspect | None:
    """Return the closers at the end that nothing opened; *started*: prose has read what is held."""
    if not options.orphan_closers or options.scope is not Scope.ANYWHERE or not options.looks_for("orphan"):
        return None
    if not started:
        held.trim()
        prose.restarted(held.base)
        prose.read(held.raw, held.canon, held.base)
    prose.let_go(held.end)
    return Suspect(Position.ORPHAN, prose.closers_at, prose.closers_at, format="orphan") if prose.is_orphan else None
