"""Answers as dictionaries by name, and as pandas frames where pandas is installed."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _html, errors

# Begins the warning that says why Z is 0.
IMPOSSIBLE = "Z is 0: "


def _frame(rows: Iterable[Mapping[str, Any]], columns: Optional[Sequence[str]] = None) -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed") from None
    return pandas.DataFrame(list(rows), columns=list(columns) if columns is not None else None)


class Posteriors(Dict[str, Dict[str, float]]):
    """P(variable = state | evidence): variable → state → probability.

    ``given`` has the variables that the query says something of: "observed", "set" or "believed". It is empty if only the job is known.
    """

    given: Mapping[str, str] = {}

    def _repr_html_(self) -> str:
        return _html.posteriors(self, self.given)

    def to_frame(self) -> Any:
        """Returns a frame with a row per state: variable, state, p."""
        rows = ({"variable": v, "state": s, "p": p} for v, d in self.items() for s, p in d.items())
        return _frame(rows, ("variable", "state", "p"))


class Joint(Dict[Tuple[str, ...], float]):
    """P(variables = states | evidence): one state per variable → probability."""

    def __init__(self, variables: Sequence[str], cells: Iterable[Tuple[Tuple[str, ...], float]]) -> None:
        super().__init__(cells)
        self.variables = tuple(variables)

    def _repr_html_(self) -> str:
        return _html.joint(self.variables, self)

    def to_frame(self) -> Any:
        """Returns a frame with a row per combination of states: the variables, p."""
        rows: Iterator[Dict[str, Any]] = ({**dict(zip(self.variables, s)), "p": p} for s, p in self.items())
        return _frame(rows, (*self.variables, "p"))


class Samples(List[Dict[str, str]]):
    """Independent samples of all variables given the evidence: variable → state each.

    ``weights`` is None if they all have the same weight, else a number each, which sum to 1. The samples are worth ``effective`` ones with
    the same weight then.
    """

    weights: Optional[List[float]] = None
    effective: Optional[float] = None

    def _repr_html_(self) -> str:
        return _html.samples(self, self.weights)

    def to_frame(self) -> Any:
        """Returns a frame with a row per sample and a column per variable."""
        return _frame(self)


@dataclasses.dataclass(frozen=True)
class MPE:
    """A most probable explanation: the likeliest states of all variables given the evidence."""

    assignment: Dict[str, str]
    ln_weight: float
    unique: bool  # whether no other assignment is as good
    others: Tuple["MPE", ...] = ()  # the next best ones, where best was given

    def _repr_html_(self) -> str:
        every = (self, *self.others)
        says = "most probable explanation" + (" (no other is as probable)" if self.unique else "")
        return _html.assignments(says, [(e.assignment, e.ln_weight) for e in every])


@dataclasses.dataclass(frozen=True)
class MAP:
    """The likeliest states of some variables given the evidence, the others summed out."""

    assignment: Dict[str, str]
    ln_weight: float
    exact: bool  # else the best found: no assignment is above ln_bound
    ln_bound: Optional[float]

    def _repr_html_(self) -> str:
        says = "most probable states" if self.exact else "best states that were found"
        return _html.assignments(says, [(self.assignment, self.ln_weight)])


@dataclasses.dataclass(frozen=True)
class Influence:
    """How far one number of the model moves a probability."""

    factor: int
    number: int  # its position in the factor's list of derivatives
    at: Mapping[str, str]  # of a table: the states at which it stands, by variable
    of: Optional[str]  # of a conditional probability table: the variable that its rows are over
    theta: float  # the number
    theta_range: Tuple[float, float]  # what it varies between
    p_range: Tuple[float, float]  # what the probability is between


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """How P(variable = state | evidence) depends on every number of the model."""

    variable: str
    state: str
    p: float
    derivatives: Optional[List[List[float]]]  # ∂p/∂θ by factor, in the order of its table; None if one is beyond float64
    covaried: List[Optional[List[float]]]  # the same if the rest of θ's row keeps its proportions; None for other factors
    tornado: Tuple[Influence, ...]  # the numbers that move p farthest, the farthest first

    def _repr_html_(self) -> str:
        return _html.sensitivity(self)

    def to_frame(self) -> Any:
        """Returns a frame with a row per number of ``tornado``."""
        return _frame(
            {
                "factor": i.factor,
                "number": i.number,
                "at": ", ".join(f"{v} = {s}" for v, s in i.at.items()),
                "theta": i.theta,
                "theta_low": i.theta_range[0],
                "theta_high": i.theta_range[1],
                "p_low": i.p_range[0],
                "p_high": i.p_range[1],
            }
            for i in self.tornado
        )


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What observing a variable would tell of the target."""

    variable: str
    mutual_information: float  # nats
    expected_entropy: float  # of the target once it is observed, nats
    utility_gain: Optional[float]  # of the best action then over the best one now; None without a utility


@dataclasses.dataclass(frozen=True)
class Information:
    """What observing other variables would tell of a target, the most telling first."""

    target: str
    entropy: float  # of the target under the evidence, nats
    exact: bool
    action: Optional[int]  # the best one under the evidence alone; None without a utility
    expected_utility: Optional[float]  # of that action
    candidates: Tuple[Candidate, ...]

    def _repr_html_(self) -> str:
        return _html.information(self)

    def to_frame(self) -> Any:
        """Returns a frame with a row per candidate."""
        return _frame(dataclasses.asdict(c) for c in self.candidates)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What ln Z lies between, nats; None where there is none on that side."""

    lower: Optional[float]
    upper: Optional[float]
    level: float  # the probability with which all of them hold; 1: they follow from the model alone
    how: str


@dataclasses.dataclass(frozen=True)
class Result:
    """The answer to one query. ``raw`` is all that the service says, as schemas/result.schema.json has it."""

    raw: Mapping[str, Any] = dataclasses.field(repr=False)
    query: int
    error: Optional[errors.BasetensorError]
    exact: bool
    method: str
    zero: bool
    log_z: Optional[float]
    uncertainty: Optional[float]
    bounds: Optional[Bounds]  # None where nothing bounds ln Z
    probability: Optional[float]  # of the event, given the evidence
    ln_probability: Optional[float]  # None where it is 0
    posteriors: Optional[Posteriors]
    joint: Optional[Joint]
    mpe: Optional[MPE]
    map: Optional[MAP]
    samples: Optional[Samples]
    sensitivity: Optional[Sensitivity]
    information: Optional[Information]
    warnings: Tuple[str, ...]

    def __getitem__(self, field: str) -> Any:
        """Returns a field of ``raw``."""
        return self.raw[field]

    def check(self) -> "Result":
        """Returns the result, or raises its error, or Impossible where the evidence has probability 0."""
        if self.error is not None:
            raise self.error
        if self.zero:
            raise _impossible(self.raw)
        return self

    def _repr_html_(self) -> str:
        return _html.result(self)


class Answer(Sequence[Result]):
    """The answer to a job: a result per query, in their order; a query with an event has two, the second with the event."""

    def __init__(self, raw: Mapping[str, Any], queries: Sequence[Mapping[str, Any]] = ()) -> None:
        """Reads an answer as the service sends it, to these queries of a request, if they are known."""
        self.raw = raw
        self.job = str(raw.get("job") or "")
        self.status = str(raw.get("status") or "")
        info = raw.get("error")
        self.error = errors.from_info(info, job=self.job) if isinstance(info, Mapping) else None
        given = [g for q in queries for g in _given(q)]
        self.results = [result(r, given[i] if i < len(given) else {}) for i, r in enumerate(raw.get("results") or [])]

    @overload
    def __getitem__(self, at: int) -> Result: ...

    @overload
    def __getitem__(self, at: slice) -> List[Result]: ...

    def __getitem__(self, at: Union[int, slice]) -> Union[Result, List[Result]]:
        return self.results[at]

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"Answer(job={self.job!r}, status={self.status!r}, results={len(self.results)})"

    def _repr_html_(self) -> str:
        return _html.answer(self)

    def check(self) -> "Answer":
        """Returns the answer, or raises its error. Errors of single queries stay in their results."""
        if self.error is not None:
            raise self.error
        return self


def _given(query: Mapping[str, Any]) -> List[Dict[str, str]]:
    """Returns for each result of a query what it says of variables, by their names or positions as the query has them."""
    given = {str(v): "observed" for v in query.get("evidence") or ()}
    given.update((str(v), "set") for v in query.get("do") or ())
    given.update((str(v), "believed") for v in query.get("believe") or ())
    if not query.get("event"):
        return [given]
    return [given, {**given, **{str(v): "observed" for v in query["event"]}}]


def result(raw: Mapping[str, Any], given: Mapping[str, str] = {}) -> Result:
    """Reads a result as the service sends it. ``given`` is what its query says of variables."""
    info = raw.get("error")
    mpe, best, bounds = raw.get("mpe"), raw.get("map"), raw.get("bounds")
    return Result(
        raw=raw,
        query=int(raw.get("query") or 0),
        error=errors.from_info(info, job=raw.get("job")) if isinstance(info, Mapping) else None,
        exact=bool(raw.get("exact")),
        method=str(raw.get("method") or ""),
        zero=bool(raw.get("zero")),
        log_z=_float(raw.get("log_z")),
        uncertainty=_float(raw.get("uncertainty")),
        bounds=None
        if bounds is None
        else Bounds(_float(bounds.get("lower")), _float(bounds.get("upper")), float(bounds["level"]), str(bounds["how"])),
        probability=_float((raw.get("ratio") or {}).get("p")),
        ln_probability=_float((raw.get("ratio") or {}).get("ln")),
        posteriors=_posteriors(raw.get("marginals"), given),
        joint=_joint(raw.get("joint")),
        mpe=None
        if mpe is None
        else MPE(
            _assignment(mpe),
            float(mpe["ln_weight"]),
            bool(mpe["unique"]),
            tuple(
                MPE(_assignment({**o, "names": mpe.get("names")}), float(o["ln_weight"]), False) for o in mpe.get("others") or ()
            ),
        ),
        map=None
        if best is None
        else MAP(_assignment(best), float(best["ln_weight"]), bool(best.get("exact")), _float(best.get("ln_bound"))),
        samples=_samples(raw.get("samples")),
        sensitivity=_sensitivity(raw.get("sensitivity")),
        information=_information(raw.get("information")),
        warnings=tuple(raw.get("warnings") or ()),
    )


def _float(x: Any) -> Optional[float]:
    return None if x is None else float(x)  # JSON may write 0 for 0.0


def _labels(names: Optional[Sequence[str]], positions: Iterable[int]) -> List[str]:
    return list(names) if names is not None else [str(x) for x in positions]


def _name(raw: Mapping[str, Any], position: str = "variable") -> str:
    """Returns a variable's name, or its position."""
    return str(raw.get("name", raw[position]))


def _posteriors(raw: Optional[Sequence[Mapping[str, Any]]], given: Mapping[str, str]) -> Optional[Posteriors]:
    if raw is None:
        return None
    posteriors = Posteriors({_name(m): dict(zip(_labels(m.get("states"), range(len(m["p"]))), map(float, m["p"]))) for m in raw})
    posteriors.given = {_name(m): given[key] for m in raw for key in (str(m["variable"]), _name(m)) if key in given}
    return posteriors


def _joint(raw: Optional[Mapping[str, Any]]) -> Optional[Joint]:
    if raw is None:
        return None
    states = raw.get("states") or [[str(x) for x in range(n)] for n in raw["shape"]]
    cells = itertools.product(*states)  # the last variable fastest
    return Joint(_labels(raw.get("names"), raw["variables"]), zip(cells, map(float, raw["p"])))


def _assignment(raw: Mapping[str, Any]) -> Dict[str, str]:
    values = raw["assignment"]
    variables = _labels(raw.get("names"), raw.get("variables") or range(len(values)))
    return dict(zip(variables, _labels(raw.get("states"), values)))


def _samples(raw: Optional[Mapping[str, Any]]) -> Optional[Samples]:
    if raw is None:
        return None
    rows = raw["assignments"]
    variables = _labels(raw.get("names"), range(len(rows[0]) if rows else 0))
    states: Sequence[Sequence[str]] = raw.get("states") or [()] * len(variables)
    samples = Samples({v: s[x] if s else str(x) for v, s, x in zip(variables, states, row)} for row in rows)
    samples.weights, samples.effective = raw.get("weights"), _float(raw.get("effective"))
    return samples


def _sensitivity(raw: Optional[Mapping[str, Any]]) -> Optional[Sensitivity]:
    if raw is None:
        return None
    return Sensitivity(
        variable=_name(raw),
        state=str(raw.get("state", raw["value"])),
        p=float(raw["p"]),
        derivatives=raw["derivatives"].get("by"),
        covaried=list(raw["covaried"]),
        tornado=tuple(_influence(i) for i in raw["tornado"]),
    )


def _influence(raw: Mapping[str, Any]) -> Influence:
    variables = raw.get("variables") or []
    names = _labels(raw.get("names"), variables)
    return Influence(
        factor=int(raw["factor"]),
        number=int(raw["number"]),
        at=dict(zip(names, _labels(raw.get("states"), raw.get("values") or []))),
        of=dict(zip(variables, names)).get(raw.get("of")),
        theta=float(raw["theta"]),
        theta_range=(float(raw["from"]), float(raw["to"])),
        p_range=(float(raw["low"]), float(raw["high"])),
    )


def _information(raw: Optional[Mapping[str, Any]]) -> Optional[Information]:
    if raw is None:
        return None
    return Information(
        target=_name(raw, "target"),
        entropy=float(raw["entropy"]),
        exact=bool(raw["exact"]),
        action=raw.get("action"),
        expected_utility=_float(raw.get("expected_utility")),
        candidates=tuple(
            Candidate(_name(c), float(c["mutual_information"]), float(c["expected_entropy"]), _float(c.get("utility_gain")))
            for c in raw["candidates"]
        ),
    )


def _impossible(raw: Mapping[str, Any]) -> errors.Impossible:
    """Returns the error for a result that Z is 0. It names observations that contradict each other, if the service does."""
    said = raw.get("conflict")
    if said is None:
        warnings = [w for w in raw.get("warnings") or () if w.startswith(IMPOSSIBLE)]
        reason = ": " + warnings[0][len(IMPOSSIBLE) :] if warnings else ""
        return errors.Impossible("the evidence has probability 0" + reason, job=raw.get("job"))
    conflict: Dict[str, Optional[str]] = {
        _name(o): None if o["value"] is None else str(o.get("state", o["value"])) for o in said["observations"]
    }
    if not conflict:
        message = "the model has probability 0 without any evidence"
    else:
        observations = [f"{v} = {'its weights' if x is None else x}" for v, x in conflict.items()]
        parts = [", ".join(observations[:-1])] * (len(observations) > 1) + observations[-1:]
        message = "the evidence has probability 0: " + " and ".join(parts) + (" contradict each other" if len(parts) > 1 else "")
    return errors.Impossible(message, conflict=conflict, smallest=bool(said.get("smallest")), job=raw.get("job"))
