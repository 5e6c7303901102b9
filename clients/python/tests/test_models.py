"""Models of other libraries become native ones with the same distribution; other models go as they are."""

import gzip
import itertools
import math
import os
import tempfile
import unittest

import libraries as fake
from basetensor import BadInput, Unsupported
from basetensor import _results, _source
from basetensor._query import build


def enumerate_native(native):
    """Returns the weight of every assignment of a native model, by name, from the definition of the format."""
    names = [v["name"] for v in native["variables"]]
    states = [v["states"] for v in native["variables"]]
    weights = {}
    for x in itertools.product(*[range(len(s)) for s in states]):
        w = 1.0
        for f in native["factors"]:
            at = 0
            for v in f["scope"]:
                at = at * len(states[v]) + x[v]
            w *= f["dense"]["values"][at]
        weights[frozenset((n, s[i]) for n, s, i in zip(names, states, x))] = w
    return weights


# P(rain), P(sprinkler | rain), P(wet | sprinkler, rain), as functions of the states' names.
RAIN = {"no": 0.8, "light": 0.15, "heavy": 0.05}
ON = {"no": 0.4, "light": 0.1, "heavy": 0.01}
WET = {
    ("off", "no"): 0.0,
    ("off", "light"): 0.7,
    ("off", "heavy"): 0.9,
    ("on", "no"): 0.85,
    ("on", "light"): 0.95,
    ("on", "heavy"): 0.99,
}


def garden():
    """Returns the weight of every assignment, by the chain rule."""
    out = {}
    for r, s, w in itertools.product(RAIN, ("off", "on"), ("dry", "wet")):
        p = RAIN[r] * (ON[r] if s == "on" else 1 - ON[r]) * (WET[s, r] if w == "wet" else 1 - WET[s, r])
        out[frozenset((("rain", r), ("sprinkler", s), ("grass", w)))] = p
    return out


class Conversion(unittest.TestCase):
    def same(self, got, want):
        self.assertEqual(set(got), set(want))
        for k, p in want.items():
            self.assertTrue(math.isclose(got[k], p, rel_tol=1e-14, abs_tol=1e-300), (k, got[k], p))

    def pgmpy(self, rain_order):
        """The garden, where the grass's table has the states of rain in another order than rain itself."""
        rain = list(RAIN)
        columns = [(s, r) for s in ("off", "on") for r in rain_order]
        return fake.DiscreteBayesianNetwork(
            ["grass", "rain", "sprinkler"],
            [
                fake.TabularCPD("rain", 3, [[RAIN[r]] for r in rain], state_names={"rain": rain}),
                fake.TabularCPD(
                    "sprinkler",
                    2,
                    [[1 - ON[r] for r in rain], [ON[r] for r in rain]],
                    ["rain"],
                    [3],
                    {"sprinkler": ["off", "on"], "rain": rain},
                ),
                fake.TabularCPD(
                    "grass",
                    2,
                    [[1 - WET[c] for c in columns], [WET[c] for c in columns]],
                    ["sprinkler", "rain"],
                    [2, 3],
                    {"grass": ["dry", "wet"], "sprinkler": ["off", "on"], "rain": list(rain_order)},
                ),
            ],
        )

    def test_pgmpy_bayesian_network(self):
        for order in (("no", "light", "heavy"), ("heavy", "no", "light")):
            native = _source.source(self.pgmpy(order)).fields["model"]
            self.same(enumerate_native(native), garden())
            self.assertTrue(native["bayes"])
            self.assertEqual([v["name"] for v in native["variables"]], ["grass", "rain", "sprinkler"])
            self.assertEqual([f["scope"][-1] for f in native["factors"]], [0, 1, 2], "the child is last")

    def test_pgmpy_factors(self):
        a = fake.DiscreteFactor(["x", "y"], [2, 3], [1, 2, 3, 4, 5, 6], {"x": ["a", "b"], "y": ["u", "v", "w"]})
        b = fake.DiscreteFactor(["y", "x"], [3, 2], [7, 8, 9, 10, 11, 12], {"y": ["w", "v", "u"], "x": ["b", "a"]})
        native = _source.source(fake.MarkovNetwork([a, b])).fields["model"]
        first = {("a", "u"): 1, ("a", "v"): 2, ("a", "w"): 3, ("b", "u"): 4, ("b", "v"): 5, ("b", "w"): 6}
        second = {("w", "b"): 7, ("w", "a"): 8, ("v", "b"): 9, ("v", "a"): 10, ("u", "b"): 11, ("u", "a"): 12}
        want = {frozenset((("x", x), ("y", y))): p * second[y, x] for (x, y), p in first.items()}
        self.same(enumerate_native(native), want)
        self.assertFalse(native["bayes"])

    def test_pyagrum(self):
        rain = fake.LabelizedVariable("rain", RAIN)
        sprinkler = fake.LabelizedVariable("sprinkler", ("off", "on"))
        grass = fake.LabelizedVariable("grass", ("dry", "wet"))
        on = [p for r in RAIN for p in (1 - ON[r], ON[r])]  # sprinkler fastest
        wet = [p for r in RAIN for s in ("off", "on") for p in (1 - WET[s, r], WET[s, r])]  # then sprinkler, then rain
        bn = fake.BayesNet(
            [
                fake.Tensor([rain], RAIN.values()),
                fake.Tensor([sprinkler, rain], on),
                fake.Tensor([grass, sprinkler, rain], wet),
            ]
        )
        native = _source.source(bn).fields["model"]
        self.same(enumerate_native(native), garden())
        self.assertEqual([f["scope"][-1] for f in native["factors"]], [0, 1, 2], "the child is last")

    def test_states_that_are_no_strings(self):
        cpd = fake.TabularCPD(7, 3, [[0.2], [0.3], [0.5]], state_names={7: [2, 1, True + 4]})
        other = fake.TabularCPD("b", 2, [[0.2], [0.8]], state_names={"b": [True, False]})
        s = _source.source(fake.DiscreteBayesianNetwork([7, "b"], [cpd, other]))
        self.assertEqual(s.fields["model"]["variables"][0]["name"], "7")
        self.assertEqual(
            build(s, {"evidence": {7: 1, "b": True}, "targets": [7]}),
            {"evidence": {"7": "1", "b": "True"}, "targets": ["7"], "marginals": True, "conflict": True},
            "a state is called what its library calls it, not what is at that position",
        )

    def test_the_next_best_are_read_by_name(self):
        mpe = {"assignment": [1], "ln_weight": -1, "unique": True, "others": [{"assignment": [0], "ln_weight": -2.5}]}
        named = {**mpe, "names": ["a"], "states": ["y"], "others": [{**mpe["others"][0], "states": ["n"]}]}
        for raw, best, other in ((mpe, {"0": "1"}, {"0": "0"}), (named, {"a": "y"}, {"a": "n"})):
            read = _results.result({"mpe": raw}).mpe
            self.assertEqual((read.assignment, read.unique), (best, True))
            self.assertEqual([(o.assignment, o.ln_weight) for o in read.others], [(other, -2.5)])

    def test_what_is_wrong_is_named(self):
        cpd = fake.TabularCPD("a", 2, [[0.5], [0.5]])
        for model, error, says in (
            (fake.DiscreteBayesianNetwork(["a", "b"], [cpd]), BadInput, "variable b has no CPD"),
            (fake.DiscreteBayesianNetwork(["a"], [object.__new__(_Gaussian)]), Unsupported, "_Gaussian, not a table"),
            (
                fake.DiscreteBayesianNetwork(
                    ["a", "b"],
                    [cpd, fake.TabularCPD("b", 2, [[1, 0], [0, 1]], ["a"], [2], {"b": [0, 1], "a": [0, 2]})],
                ),
                BadInput,
                r"variable a has the states \[0, 1\], and \[0, 2\]",
            ),
            (
                fake.DiscreteBayesianNetwork([1, "1"], [fake.TabularCPD(k, 2, [[1], [0]]) for k in (1, "1")]),
                BadInput,
                "two variables have the name '1'",
            ),
            (
                fake.DiscreteBayesianNetwork(["a"], [fake.TabularCPD("a", 2, [[1], [0]], state_names={"a": [1, "1"]})]),
                BadInput,
                "two states of variable 'a'",
            ),
            (3.5, BadInput, "builtins.float is no model"),
        ):
            with self.assertRaisesRegex(error, says):
                _source.source(model)

    def test_libraries_that_are_installed(self):
        tried = 0
        try:
            from pgmpy.factors.discrete import TabularCPD

            try:
                from pgmpy.models import DiscreteBayesianNetwork as Network
            except ImportError:
                from pgmpy.models import BayesianNetwork as Network
        except ImportError:
            pass
        else:
            tried += 1
            model = Network([("rain", "sprinkler"), ("sprinkler", "grass"), ("rain", "grass")])
            for c in self.pgmpy(("heavy", "no", "light")).get_cpds():
                card, rest = c.cardinality[0], math.prod(c.cardinality[1:])
                flat = c.values.ravel().tolist()
                rows = [flat[i * rest : (i + 1) * rest] for i in range(card)]
                model.add_cpds(TabularCPD(c.variable, card, rows, c.variables[1:], c.cardinality[1:], c.state_names))
            self.same(enumerate_native(_source.source(model).fields["model"]), garden())
        try:
            import pyagrum as gum
        except ImportError:
            try:
                import pyAgrum as gum
            except ImportError:
                gum = None
        if gum is not None:
            tried += 1
            bn = gum.fastBN("rain{no|light|heavy}->grass{dry|wet}<-sprinkler{off|on}<-rain")
            bn.cpt("rain")[:] = list(RAIN.values())
            for r in RAIN:
                bn.cpt("sprinkler")[{"rain": r}] = [1 - ON[r], ON[r]]
                for s in ("off", "on"):
                    bn.cpt("grass")[{"rain": r, "sprinkler": s}] = [1 - WET[s, r], WET[s, r]]
            self.same(enumerate_native(_source.source(bn).fields["model"]), garden())
        if not tried:
            self.skipTest("neither pgmpy nor pyAgrum is installed")


class _Gaussian:
    variable = "a"


class Sources(unittest.TestCase):
    def test_files_text_and_names(self):
        with tempfile.TemporaryDirectory() as d:
            text = "network x { }\n"
            plain, zipped = os.path.join(d, "a.bif"), os.path.join(d, "a.XDSL.gz")
            with open(plain, "w") as f:
                f.write(text)
            with gzip.open(zipped, "wt") as f:
                f.write(text)
            for given, want in (
                (plain, {"text": text, "format": "bif"}),
                (_Path(plain), {"text": text, "format": "bif"}),
                (zipped, {"text": text, "format": "xdsl"}),
                (text, {"text": text}),
                (text.encode(), {"text": text}),
                (gzip.compress(text.encode()), {"text": text}),
                ("alarm", {"model_name": "alarm"}),
                ("alarm@3", {"model_name": "alarm@3"}),
                ({"basetensor_model": 1}, {"model": {"basetensor_model": 1}}),
            ):
                self.assertEqual(_source.source(given).fields, want)
            self.assertEqual(_source.source(text, "net").fields, {"text": text, "format": "net"})
            with self.assertRaises(FileNotFoundError):
                _source.source("no-such.bif")
            with self.assertRaises(FileNotFoundError):
                _source.source(_Path(os.path.join(d, "alarm")))
            with self.assertRaises(BadInput):
                _source.source(b"\x1f\x8bnot gzip at all")


class _Path(os.PathLike):
    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return self._path


class Queries(unittest.TestCase):
    def build(self, **q):
        return build(_source.Source({}), q)

    def test_what_is_asked(self):
        self.assertEqual(
            self.build(
                evidence={"a": "yes", 3: 1, "c": [0.8, 0.2], "d": {"no": 0.5, "yes": 1}},
                targets="a",
                joint=["a", 3],
                event={"e": 0},
                map=(1, "b"),
                samples=5,
                seed=2**64 - 1,
                mpe=True,
                best=3,
                gradients=False,
                sensitivity={"a": "yes"},
                information={"target": "a", "candidates": ["b"]},
            ),
            {
                "evidence": {"a": "yes", "3": 1, "c": [0.8, 0.2], "d": {"no": 0.5, "yes": 1.0}},
                "marginals": True,
                "targets": ["a"],
                "joint": ["a", 3],
                "event": {"e": 0},
                "map": [1, "b"],
                "samples": 5,
                "seed": 2**64 - 1,
                "mpe": True,
                "best": 3,
                "sensitivity": {"variable": "a", "value": "yes"},
                "information": {"target": "a", "candidates": ["b"]},
                "conflict": True,
            },
        )
        self.assertEqual(self.build(), {})
        self.assertEqual(self.build(evidence={"a": True}), {"evidence": {"a": "True"}, "conflict": True}, "a state, not a position")
        self.assertEqual(self.build(evidence={"a": 1}, conflict=False), {"evidence": {"a": 1}})
        believed = {"evidence": {"a": 1}, "believe": {"b": [0.5, 0.5]}}
        self.assertEqual(self.build(**believed), believed, "beside beliefs no conflict can be asked for")

    def test_what_is_wrong_is_named(self):
        for q, says in (
            ({"evidence": ["a"]}, "list is no dictionary"),
            ({"evidence": {"a": 1.5}}, "value of 'a': 1.5 is neither"),
            ({"evidence": {"a": None}}, "None is neither"),
            ({"evidence": {"a": -1}}, "position -1 is negative"),
            ({"evidence": {"3": 1, 3: 0}}, "variable 3 twice"),
            ({"evidence": {"a": [0.5, -1]}}, "weight -1.0 of variable a"),
            ({"evidence": {"a": [float("nan"), 1]}}, "weight nan"),
            ({"samples": -1}, "samples: -1 is no count"),
            ({"samples": 2.5}, "samples: 2.5 is no count"),
            ({"sensitivity": "a"}, "no pair"),
            ({"information": {"candidates": ["a"]}}, "no target"),
            ({"evidenc": {}}, "no field 'evidenc'"),
        ):
            with self.assertRaisesRegex(BadInput, says):
                self.build(**q)


if __name__ == "__main__":
    unittest.main()
