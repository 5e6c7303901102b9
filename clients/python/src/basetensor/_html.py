"""What a notebook shows of an answer: HTML without scripts and style sheets, in which every name is escaped."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from ._results import Answer, Influence, Information, Result, Sensitivity

# The most that is shown of each: the rest is in the object itself.
VARIABLES = 30
STATES = 8
CELLS = 20
SAMPLES = 10
COLUMNS = 20
CANDIDATES = 20

# Bars have these colours on light and dark backgrounds.
FILL = "#4c86c6"
GIVEN = "#8f8f8f"

_CELL = "padding:1px 8px 1px 0;text-align:left;border:none;background:none;"
_NUMBER = "padding:1px 8px 1px 0;text-align:right;border:none;background:none;font-variant-numeric:tabular-nums;"
_HEAD = _CELL + "font-weight:600;"


class _Markup(str):
    """Text that is HTML already."""


def _text(value: Any) -> str:
    return value if isinstance(value, _Markup) else html.escape(str(value))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f'<td style="{_NUMBER}">{_probability(value)}</td>'
    return f'<td style="{_CELL}">{_text(value)}</td>'


def _probability(p: float) -> str:
    """Returns a number with four digits, and one next to 1 as what it lacks."""
    if 0.9995 < p < 1:
        return f"1 − {1 - p:.3g}"
    return f"{p:.4g}"


def _bar(low: float, high: float, colour: str = FILL) -> _Markup:
    """Returns a bar between two shares of its width."""
    width = f"width:{100 * (high - low):.1f}%;min-width:{1 if high > low else 0}px"
    return _Markup(
        '<div style="width:120px;height:0.8em;background:rgba(128,128,128,0.2)">'
        f'<div style="margin-left:{100 * low:.1f}%;{width};height:100%;background:{colour}"></div></div>'
    )


def _table(caption: str, head: Iterable[Any], rows: Iterable[Iterable[Any]], more: str = "") -> str:
    """Returns a table. ``more`` says what is left out of it."""
    titles = "".join(f'<th style="{_HEAD}">{_text(h)}</th>' for h in head)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:0 0 8px 0">'
        + f'<caption style="text-align:left;caption-side:top;font-weight:600;white-space:nowrap">{_text(caption)}</caption>'
        + (f"<thead><tr>{titles}</tr></thead>" if titles else "")
        + f"<tbody>{body}</tbody></table>"
        + (f'<div style="margin:-6px 0 8px 0;opacity:0.7">{_text(more)}</div>' if more else "")
    )


def _more(count: int, shown: int, what: str) -> str:
    return f"{shown:,} of {count:,} {what}" if count > shown else ""


def posteriors(distributions: Mapping[str, Mapping[str, float]], given: Mapping[str, str]) -> str:
    """Returns bars for each variable, those that are given after the others and marked."""
    order = sorted(distributions, key=lambda v: v in given)[:VARIABLES]
    blocks = "".join(f"<div>{_posterior(v, distributions[v], given.get(v, ''))}</div>" for v in order)
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:0 24px">{blocks}</div>'
        f'<div style="opacity:0.7">{_more(len(distributions), len(order), "variables")}</div>'
    )


def _posterior(variable: str, states: Mapping[str, float], given: str) -> str:
    shown = list(states.items())
    more = ""
    if len(shown) > STATES:
        shown = sorted(shown, key=lambda sp: -sp[1])[:STATES]
        others = max(0.0, sum(states.values()) - sum(p for _, p in shown))
        more = f"{len(states) - STATES:,} more: {_probability(others)}"
    rows = [(s, _bar(0, p, GIVEN if given else FILL), p) for s, p in shown]
    return _table(variable + (f" ({given})" if given else ""), (), rows, more)


def joint(variables: Sequence[str], cells: Mapping[Tuple[str, ...], float]) -> str:
    """Returns a row per combination of states, the most probable ones if there are many."""
    shown = list(cells.items())
    if len(shown) > CELLS:
        shown = sorted(shown, key=lambda sp: -sp[1])[:CELLS]
    rows = [(*states, _bar(0, p), p) for states, p in shown]
    return _table("joint probability", (*variables, "", ""), rows, _more(len(cells), len(shown), "combinations"))


def assignments(says: str, found: Sequence[Tuple[Mapping[str, str], float]]) -> str:
    """Returns a row per variable and a column per assignment, with ln of its weight below.

    States that differ from those of the first assignment are bold.
    """
    first = found[0][0]
    columns = found[:COLUMNS]

    def state(variable: str, assignment: Mapping[str, str]) -> str:
        text = _text(assignment[variable])
        return _Markup(f"<b>{text}</b>" if assignment[variable] != first[variable] else text)

    rows: List[Tuple[Any, ...]] = [(v, *(state(v, a) for a, _ in columns)) for v in list(first)[:VARIABLES]]
    rows.append((_Markup("<i>ln weight</i>"), *(f"{w:.6g}" for _, w in columns)))
    head = ("variable", *(range(1, len(columns) + 1) if len(columns) > 1 else ("state",)))
    return _table(says, head, rows, _more(len(first), min(len(first), VARIABLES), "variables"))


def samples(rows: Sequence[Mapping[str, str]], weights: Optional[Sequence[float]]) -> str:
    """Returns the first samples, with their weights if they differ."""
    variables = list(rows[0])[:COLUMNS] if rows else []
    shown = rows[:SAMPLES]
    head = (*(("weight",) if weights else ()), *variables)
    body = [(*((weights[i],) if weights else ()), *(row[v] for v in variables)) for i, row in enumerate(shown)]
    more = [_more(len(rows), len(shown), "samples"), _more(len(rows[0]) if rows else 0, len(variables), "variables")]
    return _table("samples", head, body, ", ".join(m for m in more if m))


def sensitivity(s: "Sensitivity") -> str:
    """Returns a row per number that moves the probability, with a bar of what this is between. All bars have one scale."""
    shown = s.tornado[:CELLS]
    least = min((i.p_range[0] for i in shown), default=0.0)
    width = max((i.p_range[1] for i in shown), default=1.0) - least or 1.0
    rows = []
    for i in shown:
        low, high = i.p_range
        rows.append((_place(i), i.theta, low, _bar((low - least) / width, (high - least) / width), high))
    caption = f"P({s.variable} = {s.state}) = {_probability(s.p)}, if one number of the model varies"
    return _table(caption, ("number", "is", "from", "", "to"), rows, _more(len(s.tornado), len(shown), "numbers"))


def _place(i: "Influence") -> str:
    """Returns where a number stands: of a conditional probability table as P(variable = state | parents)."""
    states = {v: f"{v} = {x}" for v, x in i.at.items()}
    if not states:
        return f"factor {i.factor}, number {i.number}"
    if i.of not in states:
        return ", ".join(states.values())
    head = states.pop(i.of)
    return f"P({head}{' | ' if states else ''}{', '.join(states.values())})"


def information(i: "Information") -> str:
    """Returns a row per variable that could be observed, with the share of the target's entropy that it would take away."""
    has_utility = any(c.utility_gain is not None for c in i.candidates)
    rows = []
    for c in i.candidates[:CANDIDATES]:
        share = min(1.0, c.mutual_information / i.entropy) if i.entropy > 0 else 0.0
        gain = (c.utility_gain,) if has_utility else ()
        rows.append((c.variable, *gain, _bar(0, share), c.mutual_information, c.expected_entropy))
    head = ("observe", *(("gain",) if has_utility else ()), "", "tells, nats", "leaves, nats")
    caption = f"what to observe next about {i.target} (entropy {i.entropy:.4g} nats)"
    return _table(caption, head, rows, _more(len(i.candidates), len(rows), "variables"))


def result(r: "Result") -> str:
    """Returns all that a result has."""
    if r.error is not None:
        return f"<div><b>{_text(type(r.error).__name__)}</b>: {_text(r.error)}</div>"
    parts = [f"<div>{_text(_summary(r))}</div>"]
    parts += [f'<div style="opacity:0.7">{_text(w)}</div>' for w in r.warnings]
    for part in (r.posteriors, r.joint, r.mpe, r.map, r.samples, r.sensitivity, r.information):
        if part is not None:
            parts.append(part._repr_html_())
    return "".join(parts)


def _summary(r: "Result") -> str:
    if r.zero:
        return "the evidence is impossible"
    said: Dict[str, str] = {}
    if r.probability is not None:
        said["P(event)"] = _probability(r.probability)
    if r.log_z is not None:
        said["ln Z"] = f"{r.log_z:.6g}"
    how = "exact" if r.exact else "an estimate"
    if r.uncertainty is not None:
        how += f" (± {r.uncertainty:.2g} nats)"
    return ", ".join([*(f"{name} = {value}" for name, value in said.items()), how])


def answer(a: "Answer") -> str:
    """Returns the results of all queries."""
    if a.error is not None:
        return f"<div><b>{_text(type(a.error).__name__)}</b>: {_text(a.error)}</div>"
    if len(a) == 1:
        return result(a[0])
    return "".join(f'<div style="font-weight:600;margin-top:8px">result {i}</div>{result(r)}' for i, r in enumerate(a[:CELLS])) + (
        f"<div>{_more(len(a), CELLS, 'results')}</div>" if len(a) > CELLS else ""
    )
