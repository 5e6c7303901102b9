"""Answers as notebooks show them, and as errors say them."""

import html.parser
import sys
import types
import unittest
from unittest import mock

import basetensor
from basetensor import _html, _results
from basetensor.errors import BadInput, Impossible, Infrastructure

# A name that would be run if it were not escaped.
EVIL = "<script>alert(\"1\")</script>&'"

RAW = {"job": "j", "query": 0, "status": "ok", "error": None, "exact": True, "method": "exact", "log_z": -1.5, "zero": False}


class Page(html.parser.HTMLParser):
    """The tags of a text, which are to be closed in their sequence, its texts, and the cells of its rows."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.rows = [], set(), [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}, attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows and "tr" in self.open:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)
        if "td" in self.open or "th" in self.open:
            if self.rows:
                self.rows[-1][-1] += data


class Notebook(unittest.TestCase):
    def page(self, shown):
        page = Page(shown._repr_html_())
        self.assertLessEqual(page.tags, {"b", "caption", "div", "i", "table", "tbody", "td", "th", "thead", "tr"})
        return page

    def raw(self, **fields):
        return _results.result({**RAW, **fields}, {EVIL: "observed"})

    def test_names_are_escaped(self):
        """Whatever a model calls its variables and states, nothing of it is a tag."""
        names, states = [EVIL, "b"], [[EVIL, "x"], ["<b>", "y"]]
        r = self.raw(
            marginals=[{"variable": 0, "name": EVIL, "states": states[0], "p": [0.25, 0.75]}],
            joint={"variables": [0, 1], "names": names, "states": states, "shape": [2, 2], "p": [0.1, 0.2, 0.3, 0.4]},
            mpe={"assignment": [0, 1], "names": names, "states": [EVIL, "y"], "ln_weight": -1, "unique": False,
                 "others": [{"assignment": [1, 0], "states": ["x", EVIL], "ln_weight": -2}]},
            map={"variables": [0], "assignment": [0], "names": [EVIL], "states": [EVIL], "ln_weight": -1, "exact": True,
                 "ln_bound": None},
            samples={"assignments": [[0, 1], [1, 0]], "names": names, "states": states, "seed": 1},
            sensitivity={"variable": 0, "name": EVIL, "value": 0, "state": EVIL, "p": 0.5, "derivatives": {}, "covaried": [None],
                         "tornado": [{"factor": 0, "number": 1, "variables": [0], "values": [0], "names": [EVIL], "states": [EVIL],
                                      "of": 0, "theta": 0.5, "from": 0.4, "to": 0.6, "low": 0.3, "high": 0.7}]},
            information={"target": 0, "name": EVIL, "entropy": 0.5, "exact": True,
                         "candidates": [{"variable": 1, "name": EVIL, "mutual_information": 0.1, "expected_entropy": 0.4}]},
            warnings=[EVIL],
        )  # fmt: skip
        for shown in (r, r.posteriors, r.joint, r.mpe, r.map, r.samples, r.sensitivity, r.information):
            text = "".join(self.page(shown).texts)
            self.assertIn(EVIL, text, type(shown))
        answer = basetensor.Answer({"job": "j", "status": "ok", "results": [r.raw, r.raw]})
        self.assertEqual("".join(self.page(answer).texts).count("result "), 2)
        info = {"code": "bad_input", "message": EVIL, "stage": "gateway"}
        for failed in (self.raw(error=info), basetensor.Answer({"job": "j", "status": "error", "error": info})):
            self.assertEqual("".join(self.page(failed).texts), "BadInput: " + EVIL)

    def test_posteriors(self):
        p = self.raw(
            marginals=[
                {"variable": 0, "name": EVIL, "states": ["n", "y"], "p": [0, 1]},
                {"variable": 1, "name": "b", "states": ["n", "y"], "p": [0.125, 0.875]},
                {"variable": 2, "name": "c", "states": [str(i) for i in range(40)], "p": [0.5, *[0.5 / 39] * 39]},
            ]
        ).posteriors
        self.assertEqual(p.given, {EVIL: "observed"})
        page = self.page(p)
        self.assertEqual(page.rows[:2], [["n", "", "0.125"], ["y", "", "0.875"]], "what is given comes last")
        self.assertEqual(page.rows[2], ["0", "", "0.5"], "the most probable state first, of many")
        self.assertEqual(len(page.rows), 2 + _html.STATES + 2)
        self.assertIn("32 more: 0.4103", page.texts)
        self.assertIn(EVIL + " (observed)", page.texts)
        many = basetensor.Posteriors({f"v{i}": {"x": 1.0} for i in range(1000)})
        page = self.page(many)
        self.assertEqual(len(page.rows), _html.VARIABLES)
        self.assertIn("30 of 1,000 variables", page.texts)

    def test_a_probability_next_to_1_is_not_1(self):
        texts = self.page(basetensor.Posteriors({"a": {"x": 1 - 1e-9, "y": 1e-9}})).texts
        self.assertIn("1 − 1e-09", texts)
        self.assertIn("1e-09", texts)

    def test_explanations_are_tables(self):
        mpe = self.raw(
            mpe={"assignment": [0, 1], "names": ["a", "b"], "states": ["n", "y"], "ln_weight": -1.25, "unique": True,
                 "others": [{"assignment": [1, 1], "states": ["y", "y"], "ln_weight": -2.5}]}
        ).mpe  # fmt: skip
        rows = self.page(mpe).rows
        self.assertEqual(rows, [["variable", "1", "2"], ["a", "n", "y"], ["b", "y", "y"], ["ln weight", "-1.25", "-2.5"]])
        self.assertEqual(mpe._repr_html_().count("<b>y</b>"), 1, "the state that differs")

    def test_numbers_are_named_by_their_place(self):
        def influence(low, high, **place):
            return {"factor": 3, "number": 1, **place, "theta": 0.5, "from": 0.4, "to": 0.6, "low": low, "high": high}

        table = {"variables": [4, 7], "values": [0, 1], "names": ["a", "b"], "states": ["n", "y"]}
        tornado = [influence(0.25, 0.75, **table, of=7), influence(0.5, 0.625, **table), influence(0.5, 0.5)]
        target = {"variable": 7, "name": "b", "value": 1, "state": "y", "p": 0.5, "derivatives": {"by": []}, "covaried": []}
        s = self.raw(sensitivity={**target, "tornado": tornado}).sensitivity
        self.assertEqual([row[0] for row in self.page(s).rows[1:]], ["P(b = y | a = n)", "a = n, b = y", "factor 3, number 1"])
        for margin, width in ((0, 100), (50, 25), (50, 0)):  # of a scale from 0.25 to 0.75
            self.assertIn(f"margin-left:{margin}.0%;width:{width}.0%", s._repr_html_())

    def test_samples_are_tables(self):
        raw = {"assignments": [[i % 2, 1] for i in range(50)], "names": ["a", "b"], "states": [["n", "y"], ["n", "y"]], "seed": 1}
        page = self.page(self.raw(samples=raw).samples)
        self.assertEqual(page.rows[:3], [["a", "b"], ["n", "y"], ["y", "y"]])
        self.assertEqual(len(page.rows), 1 + _html.SAMPLES)
        self.assertIn("10 of 50 samples", page.texts)
        weighted = self.raw(samples={**raw, "assignments": [[0, 1]], "weights": [1.0], "effective": 1}).samples
        self.assertEqual(self.page(weighted).rows, [["weight", "a", "b"], ["1", "n", "y"]])
        self.page(self.raw(samples={"assignments": [], "seed": 1}).samples)

    def test_frames(self):
        """Rankings as pandas gets them."""
        pandas = types.SimpleNamespace(DataFrame=lambda rows, columns: rows)
        place = {"variables": [4, 7], "values": [0, 1], "names": ["a", "b"], "states": ["n", "y"], "of": 7}
        moves = {"factor": 3, "number": 1, **place, "theta": 0.5, "from": 0.4, "to": 0.6, "low": 0.3, "high": 0.7}
        s = {"variable": 7, "value": 1, "p": 0.5, "derivatives": {"by": [[1.0]]}, "covaried": [None], "tornado": [moves]}
        i = {"target": 7, "entropy": 0.5, "exact": True, "action": 1, "expected_utility": 2,
             "candidates": [{"variable": 4, "mutual_information": 0, "expected_entropy": 0.5, "utility_gain": 1}]}  # fmt: skip
        r = self.raw(sensitivity=s, information=i)
        self.assertEqual((r.sensitivity.variable, r.sensitivity.state, r.sensitivity.derivatives), ("7", "1", [[1.0]]))
        self.assertEqual((r.information.action, r.information.expected_utility), (1, 2.0))
        self.assertIn("gain", self.page(r.information).rows[0])
        with mock.patch.dict(sys.modules, pandas=pandas):
            self.assertEqual(
                r.sensitivity.to_frame(),
                [{"factor": 3, "number": 1, "at": "a = n, b = y", "theta": 0.5, "theta_low": 0.4, "theta_high": 0.6,
                  "p_low": 0.3, "p_high": 0.7}],
            )  # fmt: skip
            self.assertEqual(
                r.information.to_frame(),
                [{"variable": "4", "mutual_information": 0.0, "expected_entropy": 0.5, "utility_gain": 1.0}],
            )

    def test_impossible_evidence_is_shown(self):
        self.assertIn("the evidence is impossible", self.page(self.raw(zero=True, log_z=None)).texts)


class Errors(unittest.TestCase):
    def impossible(self, **raw):
        with self.assertRaises(Impossible) as e:
            _results.result({**RAW, "zero": True, "log_z": None, **raw}).check()
        return e.exception

    def test_impossible_names_what_contradicts(self):
        a = {"variable": 0, "name": "a", "value": 1, "state": "yes"}
        b = {"variable": 1, "name": "b", "value": None}
        for observations, conflict, says in (
            ([a], {"a": "yes"}, "the evidence has probability 0: a = yes"),
            ([a, b], {"a": "yes", "b": None}, "the evidence has probability 0: a = yes and b = its weights contradict each other"),
            (
                [a, b, {"variable": 2, "value": 0}],
                {"a": "yes", "b": None, "2": "0"},
                "the evidence has probability 0: a = yes, b = its weights and 2 = 0 contradict each other",
            ),
            ([], {}, "the model has probability 0 without any evidence"),
        ):
            e = self.impossible(conflict={"observations": observations, "smallest": True})
            self.assertEqual((e.conflict, e.smallest, str(e)), (conflict, True, says))
        e = self.impossible(warnings=["something", 'Z is 0: no value of "a" has a weight above 0'])
        self.assertEqual((e.conflict, str(e)), (None, 'the evidence has probability 0: no value of "a" has a weight above 0'))
        self.assertEqual(str(self.impossible()), "the evidence has probability 0")

    def test_the_stage_is_for_failures_of_the_service(self):
        self.assertEqual(str(BadInput("no variable", stage="gateway")), "no variable")
        self.assertEqual(str(Infrastructure("no Redis", stage="aggregator")), "no Redis (aggregator)")
        self.assertEqual(BadInput("x", stage="gateway").stage, "gateway")


if __name__ == "__main__":
    unittest.main()
