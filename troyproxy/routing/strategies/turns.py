"""Strategies that give every member its turn: a circle, and a shuffled deck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from troyproxy.routing.context import Cursor, Deck, Effect, Order, RouteContext
from troyproxy.routing.members import Unit


def round_robin(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The circle, from the stop after the last plan's; a stop is kept for `sticky` plans.

    The place is a member's identity, looked up in the whole circle: members that are added, removed or not eligible
    for one request do not throw the others out of turn.
    """
    if not members:
        return Order(())
    by_identity = {unit.identity: unit for unit in members}
    first, left = next_stop(by_identity, ctx)
    names = list(by_identity)
    start = names.index(first)
    turned = tuple(by_identity[name] for name in names[start:] + names[:start])
    return Order(turned, (Effect(ctx.combo_id, Cursor(first, left)),))


def next_stop(eligible: Mapping[str, Unit], ctx: RouteContext) -> tuple[str, int]:
    """Return the identity that leads the next plan, and the plans it has left after that."""
    cursor = ctx.state if isinstance(ctx.state, Cursor) else None
    if cursor is not None and cursor.left > 0 and cursor.at in eligible:
        return cursor.at, min(cursor.left, ctx.sticky) - 1
    circle = ctx.circle or tuple(eligible)
    after = circle.index(cursor.at) + 1 if cursor is not None and cursor.at in circle else 0
    turned = circle[after:] + circle[:after]
    return next(name for name in turned if name in eligible), ctx.sticky - 1


def strict_random(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """A shuffled deck: each member once per cycle; the first card of a new deck is not the last of the old one.

    A card whose member is not eligible now stays in the deck for later. The deck is made anew when no card in it can
    be dealt, or when the combo's members change. Behind the dealt card come the rest of the deck, then the others.
    """
    if not members:
        return Order(())
    eligible = {unit.identity: unit for unit in members}
    circle = ctx.circle or tuple(eligible)
    deck = ctx.state if isinstance(ctx.state, Deck) else None
    left = deck.left if deck is not None and deck.members == circle else ()
    if not any(card in eligible for card in left):
        left = _shuffled(circle, eligible, deck, ctx)
    dealt = next(card for card in left if card in eligible)
    rest = tuple(card for card in left if card != dealt)
    names = dict.fromkeys((dealt, *(card for card in rest if card in eligible), *eligible))
    effect = Effect(ctx.combo_id, Deck(circle, rest, dealt))
    return Order(tuple(eligible[name] for name in names), (effect,))


def _shuffled(
    circle: Sequence[str], eligible: Mapping[str, Unit], before: Deck | None, ctx: RouteContext
) -> tuple[str, ...]:
    """Return a new deck whose first card that can be dealt is not the last one of the deck before."""
    cards = [card for card in circle if card in eligible] + [card for card in circle if card not in eligible]
    playable = len(eligible)
    ctx.rng.shuffle(head := cards[:playable])
    if before is not None and playable > 1 and head[0] == before.last:
        other = ctx.rng.randrange(1, playable)
        head[0], head[other] = head[other], head[0]
    return (*head, *cards[playable:])
