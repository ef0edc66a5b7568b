"""docs/strategies.md cannot lie: its examples run through the strategies, its tables equal the code's."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections import Counter
from random import Random
from typing import Final

import pytest

from tests.auto.pools import POOL, golden_scores
from tests.draw_scores import PICTURE, SETS, draw
from tests.routing.builders import snapshot
from tests.routing.rounds import NOW, context, units
from tests.strategy_page import PAGE, UNKNOWN, Example, Rows, example, marked, number, price, reading, unit
from troyproxy.accounting.usage import Usage
from troyproxy.auto.config import FIELDS
from troyproxy.auto.decision import Decision, Entry, Rules, decide
from troyproxy.auto.exclusion import FRESH, Place, excluded
from troyproxy.auto.factors import Demand
from troyproxy.auto.variants import MODES, STANDARD_EXPLORATION, VARIANTS, Known
from troyproxy.auto.weights import DEFAULT, FACTORS, PACKS
from troyproxy.catalog.combos import STRATEGY_NAMES
from troyproxy.proxy.combo_book import as_written, read_combo
from troyproxy.proxy.explain_auto import auto_told
from troyproxy.proxy.wishes import ALIASES
from troyproxy.routing.context import Order, State
from troyproxy.routing.eligibility import SkipReason
from troyproxy.routing.strategies import STRATEGIES
from troyproxy.routing.strategies.measured import promise
from troyproxy.routing.strategies.quotas import reset_value

EXAMPLES: Final = {name: example(name) for name in STRATEGIES}
PLACED: Final = [name for name, shown in EXAMPLES.items() if "place" in shown.rows[0]]
DRAWN: Final = [name for name, shown in EXAMPLES.items() if "leads" in shown.rows[0]]
IN_TURN: Final = [name for name, shown in EXAMPLES.items() if "plan" in shown.rows[0]]
DRAWS: Final = 4_000
SLACK: Final = 0.025
"""More than three standard deviations of a share of that many draws."""
SIGMA: Final = "\N{GREEK SMALL LETTER SIGMA}"
ESTIMATES: Final = {"A": 0.03, "B": 0.005, "C": 0.002}


def ordered(name: str, shown: Example, seed: int = 1) -> list[str]:
    """Return the members of the example in the order of the strategy *name*."""
    served, able = shown.said(r"`(\w+)` served last"), [row for row in shown.rows if row.get("place") != UNKNOWN]
    readings = {row["member"]: reading(row) for row in able}
    circle = tuple(row["member"] for row in shown.rows)
    ctx = context(seed, readings=readings, last=served, tokens=shown.tokens, circle=circle)
    return [member.identity for member in STRATEGIES[name]([unit(row) for row in able], ctx).members]


# --- strategies -----------------------------------------------------------------------------------------------------


def test_every_strategy_has_an_example_of_one_kind() -> None:
    assert sorted([*PLACED, *DRAWN, *IN_TURN]) == sorted(STRATEGIES)


def test_every_strategy_has_a_section() -> None:
    heads = [word for head in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE) for word in head.split(" and ")]
    assert [name for name in STRATEGY_NAMES if name not in heads] == []


@pytest.mark.parametrize("name", PLACED)
def test_the_order_of_an_example_is_that_of_the_strategy(name: str) -> None:
    shown = EXAMPLES[name]
    placed = sorted((row for row in shown.rows if row["place"] != UNKNOWN), key=lambda row: int(row["place"]))
    assert ordered(name, shown) == [row["member"] for row in placed]


@pytest.mark.parametrize("name", PLACED)
def test_who_is_left_out_of_an_example_has_a_reason_that_exists(name: str) -> None:
    out = {row.get("state", "") for row in EXAMPLES[name].rows if row["place"] == UNKNOWN}
    assert out <= set(SkipReason)


@pytest.mark.parametrize("name", DRAWN)
def test_who_leads_an_example_how_often_is_true(name: str) -> None:
    shown = EXAMPLES[name]
    leads = Counter(ordered(name, shown, seed)[0] for seed in range(DRAWS))
    expected = {row["member"]: number(row["leads"]) for row in shown.rows}
    assert {member: leads[member] / DRAWS for member in expected} == pytest.approx(expected, abs=SLACK)


@pytest.mark.parametrize("name", IN_TURN)
def test_the_turns_of_an_example_are_those_of_the_strategy(name: str) -> None:
    state: State | None = None
    for row in EXAMPLES[name].rows:
        order = _turn(name, row, state)
        state = order.effects[0].state
        shown = " ".join(member.identity for member in order.members)
        assert shown.startswith(row.get("dealt", row.get("order", ""))), row


def _turn(name: str, row: dict[str, str], state: State | None) -> Order:
    ctx = context(int(row["plan"]), state=state, circle=tuple("abc"))
    return STRATEGIES[name](units(row["eligible"].replace(" ", "")), ctx)


def test_the_promises_of_p2c_are_reckoned_right() -> None:
    rows = EXAMPLES["p2c"].rows
    assert [f"{promise(reading(row)):.2f}" for row in rows] == [row["promise"] for row in rows]


def test_the_values_of_reset_aware_are_reckoned_right() -> None:
    values = [(row["value"], reset_value(reading(row), NOW)) for row in EXAMPLES["reset-aware"].rows]
    assert [told for told, _ in values] == [f"{value:.2f}" if value >= 0 else "used up" for _, value in values]


def test_the_costs_are_reckoned_right() -> None:
    shown = EXAMPLES["cost-optimized"]
    read, written = (int(count.replace(",", "")) for count in re.findall(r"\d[\d,]*", shown.told))
    usage = Usage(read, written)
    assert [price(row, usage) for row in shown.rows] == pytest.approx([number(row["cost ($)"]) for row in shown.rows])


# --- the auto engine ------------------------------------------------------------------------------------------------


def test_the_variants_are_those_of_the_code() -> None:
    packs = {id(weights): name for name, weights in PACKS.items()} | {id(DEFAULT): "default"}
    known = {Known.MARGIN: "within 0.05 of the best", Known.FIRST: "always"}
    expected = [
        {
            "model": f"`{name}`",
            "weights": packs[id(variant.weights)],
            "exploration": f"{STANDARD_EXPLORATION if variant.exploration is None else variant.exploration:.0%}",
            "last known good": known[variant.known],
        }
        for name, variant in VARIANTS.items()
    ]
    assert [{**row, "exploration": row["exploration"].replace(" ", "")} for row in marked("variants")] == expected


def test_the_packs_are_those_of_the_code() -> None:
    shown = {row["factor"].strip("`"): row for row in marked("packs")}
    assert tuple(shown) == FACTORS
    told = {name: {factor: number(row[name]) for factor, row in shown.items()} for name in SETS}
    assert told == {name: dict(weights) for name, weights in SETS.items()}


def test_every_factor_is_explained_in_order() -> None:
    section = PAGE.partition("### Nine factors")[2].partition("### ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == FACTORS


def test_the_pool_is_the_golden_one() -> None:
    told = [
        (
            row["circuit"].replace("-", "_"),
            *(number(row[name]) for name in ("quota left", "price ($/M)", "p95 (ms)", f"{SIGMA} (ms)")),
            row["account tier"],
            number(row["fitness"]),
        )
        for row in marked("pool")
    ]
    assert told == [
        (one.circuit.name.lower(), one.quota, one.input_usd, one.p95_ms, one.sigma_ms, one.account_tier, one.fitness)
        for one in POOL
    ]


@pytest.mark.parametrize("row", marked("golden"), ids=lambda row: row["weights"])
def test_the_scores_are_those_of_the_engine(row: dict[str, str]) -> None:
    assert [number(row[name]) for name in "ABC"] == pytest.approx(golden_scores(SETS[row["weights"]]), abs=0.00005)


@pytest.mark.parametrize("row", marked("decisions"), ids=lambda row: "-".join(row.values()))
def test_a_decision_is_that_of_the_engine(row: dict[str, str]) -> None:
    decision = _decided(row)
    strict = not decision.order and decision.cheapest_usd == min(ESTIMATES.values())
    assert ("402" if strict else " ".join(decision.order)) == row["order"]


def _decided(row: dict[str, str]) -> Decision:
    pool = [
        Entry(name, standing, ESTIMATES[name], Place.OUT if name == row["excluded"] else Place.IN)
        for name, standing in zip("ABC", POOL, strict=True)
    ]
    variant = VARIANTS.get(row["weights"])
    rules = Rules(
        weights=MODES[row["weights"]],
        known=variant.known if variant is not None else Known.MARGIN,
        last=None if row["served last"] == UNKNOWN else row["served last"],
        budget_usd=number(row["budget (USD)"]),
        strict=row["policy"] == "strict",
    )
    return decide(pool, Demand(), rules, Random(1))


def test_the_estimates_are_those_of_the_page() -> None:
    assert "0.03 USD at A, 0.005 at B and 0.002 at C" in PAGE
    assert ESTIMATES == {"A": 0.03, "B": 0.005, "C": 0.002}


def test_the_ladder_is_that_of_the_code() -> None:
    (row,) = marked("ladder")
    record, terms_s = FRESH, []
    for _ in range(5):
        now = record.until or NOW
        record = excluded(record, now)
        terms_s.append((record.until or 0.0) - now)
    assert [number(row[str(at)]) for at in range(1, 6)] == [term_s / 60 for term_s in terms_s]


def test_every_alias_of_a_mode_is_told_with_its_pack() -> None:
    packs = {id(weights): name for name, weights in SETS.items()}
    assert [name for name in ALIASES if f"`{name}` ({packs[id(MODES[name])]})" not in PAGE] == []


def _posted() -> dict[str, object]:
    found = re.search(r"/api/combos .*?-d '\n(.*?)'\n", PAGE, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def test_the_combo_of_the_page_can_be_posted_and_gets_the_weights_that_it_shows() -> None:
    written = as_written(read_combo(_posted(), snapshot()))
    told = {row["factor"].strip("`"): number(row["weight"]) for row in marked("effective")}
    assert written["effective_weights"] == pytest.approx(told, abs=0.00005)


def test_every_key_of_an_auto_combo_is_told() -> None:
    assert [name for name in FIELDS if f"`{name}`" not in PAGE] == []


def test_every_field_of_an_explanation_is_told() -> None:
    rows: Rows = marked("explained")
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row["field"])}
    tree = ast.parse(inspect.getsource(auto_told))
    (answer,) = (node for node in ast.walk(tree) if isinstance(node, ast.Dict) and node.keys)
    assert told == {key.value for key in answer.keys if isinstance(key, ast.Constant)}


# --- the picture ----------------------------------------------------------------------------------------------------


def test_the_picture_is_what_the_data_draws() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(), "python -m tests.draw_scores"


def test_the_page_shows_the_picture() -> None:
    assert f"]({PICTURE.name})" in PAGE
