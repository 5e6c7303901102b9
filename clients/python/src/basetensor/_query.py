"""Questions as callers ask them, turned into the JSON of a request."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from ._source import Source
from .errors import BadInput

# A variable: its name or its position.
Variable = Union[str, int]

# Observations: variable → state's name, position, or a weight per state (a list, or a dictionary by name).
Evidence = Mapping[Any, Any]

# A query as a dictionary of the arguments of Client.infer.
Query = Mapping[str, Any]

FIELDS = (
    "evidence",
    "marginals",
    "targets",
    "joint",
    "event",
    "do",
    "believe",
    "mpe",
    "best",
    "map",
    "samples",
    "seed",
    "gradients",
    "sensitivity",
    "information",
    "conflict",
)


def build(source: Source, given: Query) -> Dict[str, Any]:
    """Returns one query of a request. Fields that are false, zero or empty are left out."""
    unknown = set(given) - set(FIELDS)
    if unknown:
        raise BadInput(f"a query has no field {sorted(unknown)[0]!r}: it has {', '.join(FIELDS)}")
    q: Dict[str, Any] = {}
    for field in ("evidence", "event", "do", "believe"):
        if given.get(field):
            q[field] = _evidence(source, given[field], field)
    for field in ("marginals", "mpe", "gradients"):
        if given.get(field):
            q[field] = True
    conflict = given.get("conflict")
    if conflict or conflict is None and "evidence" in q and "believe" not in q:
        q["conflict"] = True
    for field in ("targets", "joint", "map"):
        if given.get(field) is not None:
            q[field] = _variables(source, given[field], field)
    if q.get("targets"):
        q.setdefault("marginals", True)
    for field in ("best", "samples", "seed"):
        if given.get(field):
            q[field] = _count(given[field], field)
    if given.get("sensitivity") is not None:
        q["sensitivity"] = _sensitivity(source, given["sensitivity"])
    if given.get("information") is not None:
        q["information"] = _information(source, given["information"])
    return q


def _evidence(source: Source, given: Any, field: str) -> Dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadInput(f"{field}: {type(given).__name__} is no dictionary of variable → value")
    out: Dict[str, Any] = {}
    for key, value in given.items():
        variable = source.variable(key)
        if str(variable) in out:
            raise BadInput(f"{field}: variable {variable} twice")
        out[str(variable)] = _observed(source, variable, value)
    return out


def _observed(source: Source, variable: Variable, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(source.value(variable, k)): _weight(variable, w) for k, w in value.items()}
    if not isinstance(value, (str, bytes)) and hasattr(value, "__len__") and hasattr(value, "__iter__"):
        return [_weight(variable, w) for w in value]
    return source.value(variable, value)


def _weight(variable: Variable, weight: Any) -> float:
    w = float(weight)
    if not math.isfinite(w) or w < 0:
        raise BadInput(f"evidence: weight {w} of variable {variable}")
    return w


def _variables(source: Source, given: Any, field: str) -> List[Variable]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        given = [given]
    return [source.variable(v) for v in given]


def _count(given: Any, field: str) -> int:
    n = given.__index__() if hasattr(given, "__index__") else -1
    if n < 0:
        raise BadInput(f"{field}: {given!r} is no count")
    return int(n)


def _target(source: Source, given: Any, field: str) -> Tuple[Variable, Variable]:
    if isinstance(given, Mapping) and len(given) == 1:
        ((variable, value),) = given.items()
    elif isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        variable, value = given
    else:
        raise BadInput(f"{field}: {given!r} is no pair of a variable and its value")
    at = source.variable(variable)
    return at, source.value(at, value)


def _sensitivity(source: Source, given: Any) -> Dict[str, Any]:
    if isinstance(given, Mapping) and "variable" in given:
        rest = {k: v for k, v in given.items() if k not in ("variable", "value")}
        variable, value = _target(source, (given["variable"], given.get("value")), "sensitivity")
        return {"variable": variable, "value": value, **rest}
    variable, value = _target(source, given, "sensitivity")
    return {"variable": variable, "value": value}


def _information(source: Source, given: Any) -> Dict[str, Any]:
    if isinstance(given, Mapping):
        out = dict(given)
    else:
        out = {"target": given}
    if out.get("target") is None:
        raise BadInput("information: no target is named")
    out["target"] = source.variable(out["target"])
    if out.get("candidates") is not None:
        out["candidates"] = _variables(source, out["candidates"], "candidates")
    else:
        out.pop("candidates", None)
    return out


def request(source: Source, queries: Sequence[Query]) -> List[Dict[str, Any]]:
    if not queries:
        raise BadInput("a request needs at least one query")
    return [build(source, q) for q in queries]
