"""Models as callers have them, turned into what a request carries.

Files, text, native dictionaries and registered names go as they are; models of pgmpy and pyAgrum become native dictionaries.
"""

from __future__ import annotations

import gzip
import os
from typing import Any, Callable, Dict, Hashable, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .errors import BadInput, Unsupported

# What may be given as a model: see Client.infer.
Model = Union[str, bytes, "os.PathLike[str]", Mapping[str, Any], Any]

# The formats of files by their extension; for others the gateway looks at the content.
FORMATS = {
    ".uai": "uai",
    ".json": "json",
    ".bif": "bif",
    ".xmlbif": "xmlbif",
    ".bifxml": "xmlbif",
    ".xml": "xmlbif",
    ".net": "net",
    ".hugin": "net",
    ".dsc": "dsc",
    ".xdsl": "xdsl",
    ".cnf": "cnf",
    ".wcnf": "cnf",
    ".dimacs": "cnf",
    ".dne": "dne",
    ".dnet": "dne",
    ".dsl": "dsl",
    ".pgmx": "pgmx",
    ".fg": "fg",
    ".wcsp": "wcsp",
    ".cfn": "cfn",
}


class Source(NamedTuple):
    """A model as fields of a request, and how its library calls variables and states."""

    fields: Dict[str, Any]
    variables: Dict[Hashable, str] = {}
    states: Dict[str, Dict[Hashable, str]] = {}

    def variable(self, name: Any) -> Union[str, int]:
        """Returns a variable as a request has it: its name or its position."""
        if isinstance(name, str):
            return name
        known = self.variables.get(name) if isinstance(name, Hashable) else None
        return known if known is not None else position(name, "variable")

    def value(self, variable: Union[str, int], value: Any) -> Union[str, int]:
        """Returns a value of a variable as a request has it: its state's name or its position."""
        if isinstance(value, str):
            return value
        known = self.states.get(str(variable), {}).get(value) if isinstance(value, Hashable) else None
        if known is not None:
            return known
        if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
            return str(bool(value))  # a state of this name, which need not be the one at position 0 or 1
        return position(value, f"value of {variable!r}")


def position(value: Any, what: str) -> int:
    try:
        at = value.__index__()
    except AttributeError:
        raise BadInput(f"{what}: {value!r} is neither a name nor a position") from None
    if at < 0:
        raise BadInput(f"{what}: position {at} is negative")
    return int(at)


def source(model: Model, format: Optional[str] = None) -> Source:
    """Returns a model as fields of a request. ``format`` says what a text is, where its content does not tell."""
    if isinstance(model, bytes):
        return _text(model, "the model", format)
    if isinstance(model, str):
        if "\n" in model or model.lstrip()[:1] in ("{", "<"):
            return _text(model.encode(), "the model", format)
        if os.path.isfile(model):
            return _file(model, format)
        if format_of(model) or os.sep in model:
            raise FileNotFoundError(f"no model file {model!r}")
        return Source({"model_name": model})
    if isinstance(model, os.PathLike):
        return _file(os.fspath(model), format)
    if isinstance(model, Mapping):
        return Source({"model": dict(model)})
    convert = _converter(model)
    if convert is None:
        raise BadInput(
            f"{type(model).__module__}.{type(model).__qualname__} is no model: give a path, text, a registered name, "
            "a native dictionary, or a model of pgmpy or pyAgrum"
        )
    return convert(model)


def format_of(path: str) -> Optional[str]:
    """Returns the format that a file's extension names, .gz taken off."""
    base = path[:-3] if path.endswith(".gz") else path
    return FORMATS.get(os.path.splitext(base)[1].lower())


def read(path: Union[str, "os.PathLike[str]"], format: Optional[str] = None) -> Tuple[bytes, Optional[str]]:
    """Returns a model file's content, not compressed any more, and its format."""
    with open(path, "rb") as f:
        return _plain(f.read(), os.fspath(path)), format or format_of(os.fspath(path))


def _plain(content: bytes, what: str) -> bytes:
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError) as e:
        raise BadInput(f"{what}: {e}") from None


def _file(path: str, format: Optional[str]) -> Source:
    content, format = read(path, format)
    return _text(content, path, format)


def _text(content: bytes, what: str, format: Optional[str]) -> Source:
    content = _plain(content, what)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # old files of GeNIe and Hugin
    return Source({"text": text, **({"format": format} if format else {})})


# Models of other libraries. None of them is imported: whoever has such a model has the library.


def _converter(model: Any) -> Optional[Callable[[Any], Source]]:
    def has(*methods: str) -> bool:
        return all(callable(getattr(model, m, None)) for m in methods)

    if has("get_cpds", "nodes") or has("get_factors"):
        return from_pgmpy
    if has("cpt", "nodes", "variable"):
        return from_pyagrum
    return None


class _Builder:
    """A native model that grows by variables and tables."""

    def __init__(self, bayes: bool) -> None:
        self.bayes = bayes
        self.names: List[str] = []
        self.keys: Dict[Hashable, int] = {}
        self.states: List[List[Hashable]] = []
        self.factors: List[Dict[str, Any]] = []

    def add(self, key: Hashable, states: Sequence[Hashable]) -> None:
        name = str(key)
        if name in self.names:
            raise BadInput(f"two variables have the name {name!r}")
        if len({str(s) for s in states}) != len(states):
            raise BadInput(f"two states of variable {name!r} have one name: {list(states)}")
        self.keys[key] = len(self.names)
        self.names.append(name)
        self.states.append(list(states))

    def table(self, scope: Sequence[Hashable], values: Sequence[float]) -> None:
        """Adds a factor: row-major, the last variable of the scope fastest."""
        at = []
        size = 1
        for key in scope:
            if key not in self.keys:
                raise BadInput(f"a factor over {[str(k) for k in scope]}: the model has no variable {str(key)!r}")
            at.append(self.keys[key])
            size *= len(self.states[at[-1]])
        if len(values) != size:
            raise BadInput(f"a factor over {[str(k) for k in scope]} has {len(values)} values in place of {size}")
        self.factors.append({"scope": at, "dense": {"values": [float(x) for x in values]}})

    def source(self) -> Source:
        variables = [
            {"name": n, "domain": len(s), "states": [str(x) for x in s]} for n, s in zip(self.names, self.states)
        ]
        native = {"basetensor_model": 1, "bayes": self.bayes, "variables": variables, "factors": self.factors}
        return Source(
            {"model": native},
            {key: self.names[i] for key, i in self.keys.items()},
            {n: {x: str(x) for x in s} for n, s in zip(self.names, self.states)},
        )


def from_pgmpy(model: Any) -> Source:
    """Converts a discrete Bayesian network, a Markov network or a factor graph of pgmpy."""
    if not callable(getattr(model, "get_cpds", None)):
        return _from_pgmpy_factors(model, list(model.get_factors()))
    cpds = {}
    for cpd in model.get_cpds():
        if not hasattr(cpd, "cardinality"):
            raise Unsupported(f"the distribution of {cpd.variable} is a {type(cpd).__name__}, not a table")
        cpds[cpd.variable] = cpd
    b = _Builder(bayes=True)
    for node in model.nodes():
        if node not in cpds:
            raise BadInput(f"variable {node} has no CPD")
        b.add(node, cpds[node].state_names[node])
    for node in model.nodes():
        cpd = cpds[node]
        scope, values = _aligned(b, cpd)  # its own variable first
        card, rest = len(b.states[b.keys[node]]), len(values) // max(1, len(b.states[b.keys[node]]))
        last = [0.0] * len(values)
        for x in range(card):
            last[x::card] = values[x * rest : (x + 1) * rest]
        b.table([*scope[1:], scope[0]], last)
    return b.source()


def _from_pgmpy_factors(model: Any, factors: Iterable[Any]) -> Source:
    b = _Builder(bayes=False)
    for f in factors:
        if not hasattr(f, "cardinality"):
            raise Unsupported(f"a factor over {f.scope()} is a {type(f).__name__}, not a table")
        for key in f.variables:
            if key not in b.keys:
                b.add(key, f.state_names[key])
    for f in factors:
        b.table(*_aligned(b, f))
    return b.source()


def _aligned(b: _Builder, f: Any) -> Tuple[List[Hashable], List[float]]:
    """Returns a factor's scope and values, its states in the order that their variables have them in the model."""
    scope = list(f.variables)
    values = _flat(f.values)
    shape = [int(c) for c in f.cardinality]
    for axis, key in enumerate(scope):
        if key not in b.keys:
            raise BadInput(f"a factor over {[str(k) for k in scope]}: the model has no variable {str(key)!r}")
        own, here = b.states[b.keys[key]], list(f.state_names[key])
        if own == here:
            continue
        if len(own) != len(here) or set(own) != set(here):
            raise BadInput(f"variable {key} has the states {own}, and {here} in a factor over {[str(k) for k in scope]}")
        inner = 1
        for c in shape[axis + 1 :]:
            inner *= c
        block = inner * shape[axis]
        order = [here.index(s) for s in own]
        values = [
            x
            for start in range(0, len(values), block)
            for at in order
            for x in values[start + at * inner : start + (at + 1) * inner]
        ]
    return scope, values


def _flat(values: Any) -> List[float]:
    return [float(x) for x in values.ravel().tolist()]


def from_pyagrum(model: Any) -> Source:
    """Converts a Bayesian network of pyAgrum.

    The first variable of a tensor, its own one, varies fastest in its values; so the scope is that sequence reversed.
    """
    b = _Builder(bayes=True)
    nodes = sorted(model.nodes())
    for node in nodes:
        variable = model.variable(node)
        b.add(variable.name(), [variable.label(x) for x in range(variable.domainSize())])
    for node in nodes:
        cpt = model.cpt(node)
        scope = [cpt.variable(i).name() for i in range(cpt.nbrDim())]
        b.table(scope[::-1], _flat(cpt.toarray()))
    return b.source()
