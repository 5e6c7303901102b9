"""The client against a gateway with workers, at the URL in BTN_GATEWAY. The truth comes from enumeration."""

import asyncio
import collections
import itertools
import json
import math
import os
import random
import time
import unittest
import uuid
import warnings

import basetensor
import libraries as fake
from basetensor import AsyncClient, Client

URL = os.environ.get("BTN_GATEWAY")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples")

try:
    import pandas
except ImportError:
    pandas = None


def clinic():
    """A network of six variables with two to three states, its numbers drawn with a fixed seed, one of them 0."""
    states = {
        "season": ["dry", "wet", "cold"],
        "exposure": ["none", "some"],
        "smoker": ["no", "yes"],
        "infection": ["no", "mild", "severe"],
        "cough": ["no", "yes"],
        "x ray": ["normal", "abnormal"],
    }
    parents = {
        "season": [],
        "exposure": ["season"],
        "smoker": [],
        "infection": ["exposure", "season"],
        "cough": ["infection", "smoker"],
        "x ray": ["infection"],
    }
    draw = random.Random(1)
    names = list(states)
    factors = []
    for name in names:
        scope = [*parents[name], name]
        values = []
        for _ in itertools.product(*[states[p] for p in parents[name]]):
            row = [draw.uniform(0.05, 1) for _ in states[name]]
            values += [x / sum(row) for x in row]
        factors.append({"scope": [names.index(v) for v in scope], "dense": {"values": values}})
    factors[-1]["dense"]["values"][:2] = [1.0, 0.0]  # without an infection the X-ray is normal
    variables = [{"name": n, "domain": len(s), "states": s} for n, s in states.items()]
    return {"basetensor_model": 1, "bayes": True, "variables": variables, "factors": factors}


class Truth:
    """All that can be asked of a small native model, by enumeration."""

    def __init__(self, native, likelihood=None):
        self.names = [v["name"] for v in native["variables"]]
        self.states = {v["name"]: v["states"] for v in native["variables"]}
        self.cells = []  # (assignment by name, weight)
        for x in itertools.product(*[range(len(v["states"])) for v in native["variables"]]):
            w = 1.0
            for f in native["factors"]:
                at = 0
                for v in f["scope"]:
                    at = at * len(native["variables"][v]["states"]) + x[v]
                w *= f["dense"]["values"][at]
            a = {n: self.states[n][i] for n, i in zip(self.names, x)}
            for v, weights in (likelihood or {}).items():
                w *= weights.get(a[v], 0.0)
            self.cells.append((a, w))
        self.z = math.fsum(w for _, w in self.cells)

    def p(self, **event):
        return math.fsum(w for a, w in self.cells if all(a[k] == v for k, v in event.items())) / self.z


DYSPNOEA = {"cough": {"yes": 1}}


@unittest.skipUnless(URL, "no gateway: set BTN_GATEWAY to its URL")
class Case(unittest.TestCase):
    def setUp(self):
        self.client = Client(URL, timeout=60)
        self.addCleanup(self.client.close)

    def assertClose(self, got, want):
        self.assertTrue(math.isclose(got, want, rel_tol=1e-11, abs_tol=1e-14), f"{got} is not {want}")


class Questions(Case):
    def test_marginals_by_name(self):
        native = clinic()
        for evidence, likelihood in (
            ({}, {}),
            ({"cough": "yes"}, {"cough": {"yes": 1}}),
            ({"cough": 1, "2": 0}, {"cough": {"yes": 1}, "smoker": {"no": 1}}),
            ({"season": [0.5, 0.25, 1], "x ray": "abnormal"}, {"season": {"dry": 0.5, "wet": 0.25, "cold": 1}, "x ray": {"abnormal": 1}}),
            ({"infection": {"severe": 0.75, "no": 0, "mild": 0.5}}, {"infection": {"severe": 0.75, "mild": 0.5}}),
        ):
            truth = Truth(native, likelihood)
            got = self.client.marginals(native, evidence)
            self.assertEqual(set(got), set(truth.names))
            for v, states in truth.states.items():
                self.assertEqual(set(got[v]), set(states))
                for s in states:
                    self.assertClose(got[v][s], truth.p(**{v: s}))
            some = self.client.marginals(native, evidence, targets=["x ray", "season"])
            self.assertEqual(some, {v: got[v] for v in ("season", "x ray")})
            r = self.client.infer(native, evidence)[0]
            self.assertTrue(r.exact)
            self.assertClose(r.log_z, math.log(truth.z))

    def test_joint_and_probability(self):
        native, truth = clinic(), Truth(clinic(), DYSPNOEA)
        joint = self.client.joint(native, ["infection", "smoker"], {"cough": "yes"})
        self.assertEqual(joint.variables, ("infection", "smoker"))
        self.assertEqual(set(joint), set(itertools.product(truth.states["infection"], truth.states["smoker"])))
        for (i, s), p in joint.items():
            self.assertClose(p, truth.p(infection=i, smoker=s))
        p = self.client.probability(native, {"infection": "severe", "smoker": "no"}, {"cough": "yes"})
        self.assertClose(p, truth.p(infection="severe", smoker="no"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that an event is impossible is the answer
            self.assertEqual(self.client.probability(native, {"infection": "no"}, {"x ray": "abnormal"}), 0.0)
        self.assertClose(self.client.infer(native, {"cough": "yes"}, event={"smoker": "yes"})[1].probability, truth.p(smoker="yes"))

    def test_likeliest_states(self):
        native, truth = clinic(), Truth(clinic(), DYSPNOEA)
        best, weight = max(truth.cells, key=lambda c: c[1])
        mpe = self.client.mpe(native, {"cough": "yes"})
        self.assertEqual(mpe.assignment, best)
        self.assertClose(mpe.ln_weight, math.log(weight))
        self.assertEqual(mpe.unique, sum(w == weight for _, w in truth.cells) == 1)
        ranked = sorted(truth.cells, key=lambda c: -c[1])[:4]
        several = self.client.mpe(native, {"cough": "yes"}, best=4)
        self.assertEqual([e.assignment for e in (several, *several.others)], [a for a, _ in ranked])
        for e, (_, w) in zip((several, *several.others), ranked):
            self.assertClose(e.ln_weight, math.log(w))
        of = [dict(infection=i, season=s) for i in truth.states["infection"] for s in truth.states["season"]]
        best = max(of, key=lambda a: truth.p(**a))
        found = self.client.map(native, ["season", "infection"], {"cough": "yes"})
        self.assertEqual(found.assignment, best)
        self.assertClose(found.ln_weight, math.log(truth.p(**best) * truth.z))
        self.assertTrue(found.exact)
        self.assertIsNone(found.ln_bound)

    def test_divided_rows_are_told(self):
        """A table whose rows do not sum to 1 comes with a warning, whatever is asked and by whom."""
        native = clinic()
        native["factors"][2]["dense"]["values"] = [0.3, 0.6]

        async def asynchronously():
            async with AsyncClient(URL) as client:
                await client.probability(native, {"cough": "yes"}, {"smoker": "no"})

        for ask in (
            lambda: self.client.marginals(native, {"cough": "yes"}),
            lambda: self.client.probability(native, {"cough": "yes"}, {"smoker": "no"}),
            lambda: self.client.mpe(native),
            lambda: asyncio.run(asynchronously()),
        ):
            with self.assertWarnsRegex(basetensor.AnswerWarning, "smoker.* sum") as told:
                ask()
            self.assertEqual(told.filename, __file__)

    def test_samples(self):
        """The frequencies of samples are those of the joint distribution, by chi²."""
        native, truth = clinic(), Truth(clinic(), DYSPNOEA)
        n = 20000
        samples = self.client.sample(native, n, {"cough": "yes"}, seed=3)
        self.assertEqual(len(samples), n)
        counts = collections.Counter(tuple(sorted(s.items())) for s in samples)
        possible = {tuple(sorted(a.items())): n * w / truth.z for a, w in truth.cells if w > 0}
        self.assertLessEqual(set(counts), set(possible))
        chi = sum((counts[a] - expected) ** 2 / expected for a, expected in possible.items())
        free = len(possible) - 1
        self.assertLess(chi, free + 6 * math.sqrt(2 * free))
        few = self.client.sample(native, 5, seed=4)
        self.assertEqual(few, self.client.sample(native, 5, seed=4))
        if pandas:
            self.assertEqual(set(few.to_frame().columns), set(truth.names))

    def test_gradients(self):
        native, truth = clinic(), Truth(clinic(), DYSPNOEA)
        got = self.client.gradients(native, {"cough": "yes"})
        for j, f in enumerate(native["factors"]):
            values = f["dense"]["values"]
            self.assertEqual(len(got[j]), len(values))
            for i in range(len(values)):
                changed = json.loads(json.dumps(native))
                changed["factors"][j]["dense"]["values"] = [float(k == i) for k in range(len(values))]
                # Z is linear in the entry: its derivative is Z with 1 there and 0 elsewhere in the factor
                self.assertClose(got[j][i], Truth(changed, DYSPNOEA).z / truth.z)

    def test_sensitivity(self):
        native, truth = clinic(), Truth(clinic(), DYSPNOEA)
        got = self.client.sensitivity(native, {"infection": "mild"}, {"cough": "yes"})
        p = truth.p(infection="mild")
        self.assertClose(got.p, p)
        self.assertEqual((got.variable, got.state), ("infection", "mild"))
        for j, f in enumerate(native["factors"]):
            values = f["dense"]["values"]
            for i in range(len(values)):
                changed = json.loads(json.dumps(native))
                changed["factors"][j]["dense"]["values"] = [float(k == i) for k in range(len(values))]
                part = Truth(changed, DYSPNOEA)
                # P is a ratio of two functions that are linear in the entry
                both = math.fsum(w for a, w in part.cells if a["infection"] == "mild")
                want = (both - p * part.z) / truth.z
                self.assertTrue(abs(got.derivatives[j][i] - want) < 1e-12, (j, i, got.derivatives[j][i], want))
        for i in got.tornado:
            scope = [native["variables"][v] for v in native["factors"][i.factor]["scope"]]
            at = 0
            for v in scope:
                at = at * len(v["states"]) + v["states"].index(i.at[v["name"]])
            self.assertEqual((at, i.of), (i.number, scope[-1]["name"]))
            self.assertClose(i.theta, native["factors"][i.factor]["dense"]["values"][at])
            self.assertTrue(i.theta_range[0] <= i.theta <= i.theta_range[1] and i.p_range[0] <= p <= i.p_range[1], i)
        spans = [i.p_range[1] - i.p_range[0] for i in got.tornado]
        self.assertEqual(spans, sorted(spans, reverse=True))

    def test_what_to_ask_next(self):
        truth = Truth(clinic(), DYSPNOEA)

        def entropy(**given):
            all_of = [truth.p(infection=s, **given) for s in truth.states["infection"]]
            z = math.fsum(all_of)
            return -math.fsum(q / z * math.log(q / z) for q in all_of if q > 0)

        got = self.client.information(clinic(), "infection", ["smoker", "exposure"], {"cough": "yes"})
        self.assertClose(got.entropy, entropy())
        self.assertEqual(len(got.candidates), 2)
        for c in got.candidates:
            name = c.variable
            want = math.fsum(truth.p(**{name: s}) * entropy(**{name: s}) for s in truth.states[name])
            self.assertClose(c.expected_entropy, want)
            self.assertClose(c.mutual_information, entropy() - want)
        self.assertEqual(got.target, "infection")
        tells = [c.mutual_information for c in got.candidates]
        self.assertEqual(tells, sorted(tells, reverse=True))

    def test_what_is_impossible_or_wrong(self):
        impossible = {"x ray": "abnormal", "infection": "no"}
        self.assertTrue(self.client.infer(clinic(), impossible)[0].zero)
        with self.assertRaises(basetensor.Impossible) as e:
            self.client.marginals(clinic(), {**impossible, "cough": "yes"})
        self.assertEqual((e.exception.conflict, e.exception.smallest), (dict(sorted(impossible.items())), True))
        self.assertEqual(
            str(e.exception), "the evidence has probability 0: infection = no and x ray = abnormal contradict each other"
        )
        for evidence, says in (
            ({"smokr": "yes"}, '^evidence: no variable "smokr": did you mean "smoker"'),
            ({"infection": "mid"}, '^evidence: variable "infection" has no value "mid": did you mean "mild"'),
            ({"smoker": 2}, '^evidence: variable "smoker" has no value'),
            ({"season": [1, 2]}, '^evidence: variable "season": 2 weights for 3 values$'),
        ):
            with self.assertRaisesRegex(basetensor.BadInput, says) as e:
                self.client.marginals(clinic(), evidence)
            self.assertEqual(e.exception.status, 400)
        with self.assertRaisesRegex(basetensor.NotFound, '^no registered model is called "no-such-model"$'):
            self.client.marginals("no-such-model")
        with self.assertRaisesRegex(basetensor.BadInput, "^settings.bond: -1 is not from 0"):
            self.client.infer(clinic(), settings={"bond": -1})
        refused = self.client.infer(slow(10), settings={"method": "exact", "memory": 1 << 10})[0].error
        self.assertIsInstance(refused, basetensor.OverBudget)
        self.assertRegex(str(refused), "^over the memory budget: .*, the budget is 1024 bytes$")
        with self.assertRaisesRegex(basetensor.BadInput, "^a deadline of 1000000000000 ms, jobs are kept for") as e:
            self.client.infer(clinic(), deadline=1e9)
        self.assertEqual(e.exception.stage, "reparam-worker")
        with self.assertRaisesRegex(basetensor.BadInput, "line 2"):
            self.client.marginals("network n {}\nvariable a b")

    def test_many_queries_are_one_job(self):
        native = clinic()
        queries = [{"evidence": {"season": s}, "marginals": True} for s in ("dry", "wet", "cold")]
        answer = self.client.infer(native, queries=queries)
        self.assertEqual(len(answer), 3)
        for s, r in zip(("dry", "wet", "cold"), answer):
            self.assertClose(r.posteriors["cough"]["yes"], Truth(native, {"season": {s: 1}}).p(cough="yes"))

    def test_models_of_other_libraries(self):
        """A pgmpy model gives what its native form gives."""
        rain = fake.TabularCPD("rain", 2, [[0.8], [0.2]], state_names={"rain": ["no", "yes"]})
        wet = fake.TabularCPD(
            "wet", 2, [[0.9, 0.1], [0.1, 0.9]], ["rain"], [2], {"wet": [False, True], "rain": ["no", "yes"]}
        )
        model = fake.DiscreteBayesianNetwork(["rain", "wet"], [rain, wet])
        got = self.client.marginals(model, {"wet": True})
        self.assertClose(got["rain"]["yes"], 0.2 * 0.9 / (0.2 * 0.9 + 0.8 * 0.1))
        self.assertEqual(got["wet"], {"False": 0.0, "True": 1.0})

    def test_models_without_names(self):
        got = self.client.marginals(os.path.join(EXAMPLES, "asia.uai"), {7: 1}, targets=[4, 0])
        self.assertEqual(set(got), {"0", "4"})
        self.assertAlmostEqual(got["4"]["1"], 0.833967, 5)

    def test_what_is_given_is_marked(self):
        answer = self.client.infer(
            clinic(), {"cough": "yes", 0: "wet"}, do={"smoker": "no"}, event={"exposure": "some"}, marginals=True
        )
        self.assertEqual(answer[0].posteriors.given, {"cough": "observed", "season": "observed", "smoker": "set"})
        html = answer._repr_html_()
        for says in ("cough (observed)", "smoker (set)", ">infection<", "P(event) = "):
            self.assertIn(says, html)
        believed = self.client.infer(clinic(), believe={"smoker": [0.5, 0.5]}, marginals=True)
        self.assertEqual(believed[0].posteriors.given, {"smoker": "believed"})

    @unittest.skipUnless(pandas, "pandas is not installed")
    def test_frames(self):
        frame = self.client.marginals(clinic(), targets=["cough"]).to_frame()
        self.assertEqual(list(frame.columns), ["variable", "state", "p"])
        self.assertEqual(set(frame.state), {"no", "yes"})
        frame = self.client.joint(clinic(), ["cough", "smoker"]).to_frame()
        self.assertEqual(list(frame.columns), ["cough", "smoker", "p"])
        self.assertAlmostEqual(frame.p.sum(), 1, 12)


class Jobs(Case):
    def test_same_id_is_the_same_job(self):
        job = "twice-" + uuid.uuid4().hex
        first = self.client.infer(clinic(), marginals=True, job=job)
        again = self.client.infer(clinic(), marginals=True, job=job)
        self.assertEqual((again.job, again[0].raw), (job, first[0].raw))
        with self.assertRaises(basetensor.Conflict):
            self.client.infer(clinic(), job=job)

    def test_submit_and_wait(self):
        job = self.client.submit(clinic(), {"cough": "yes"}, marginals=True)
        told = []
        answer = self.client.wait(job, progress=told.append)
        self.assertClose(answer[0].posteriors["smoker"]["yes"], Truth(clinic(), DYSPNOEA).p(smoker="yes"))
        self.assertEqual(self.client.job(job)["status"], "ok")
        self.assertEqual([e.name for e in self.client.events(job)], ["answer"])
        with self.assertRaises(basetensor.NotFound):
            self.client.wait("nobody-" + uuid.uuid4().hex)
        told = []
        self.client.infer(clinic(), marginals=True, progress=told.append)
        for p in told:
            self.assertIn("stage", p)

    def test_cancel(self):
        job = self.client.submit(slow(), settings=SLOW)
        ended = self.client.cancel(job)
        self.assertEqual(ended.status, "cancelled")
        with self.assertRaises(basetensor.Cancelled):
            self.client.wait(job).check()

    def test_patience_ends_the_wait_and_not_the_job(self):
        job = self.client.submit(slow(), settings=SLOW)
        with self.assertRaises(basetensor.Timeout) as e:
            self.client.wait(job, timeout=0.3)
        self.assertEqual(e.exception.job, job)
        self.assertEqual(self.client.cancel(job).status, "cancelled")


SLOW = {"method": "truncated", "bond": 256, "budget": 1e14}


def slow(n=40):
    """An Ising grid of n × n variables, which takes minutes with these settings if n is 40."""
    draw = random.Random(2)
    factors = []
    for i in range(n * n):
        for j in ([i + 1] if (i + 1) % n else []) + ([i + n] if i + n < n * n else []):
            w = math.exp(draw.uniform(-1, 1))
            factors.append({"scope": [i, j], "dense": {"values": [w, 1 / w, 1 / w, w]}})
    return {"basetensor_model": 1, "variables": [{"domain": 2}] * (n * n), "factors": factors}


class Registered(Case):
    def test_life_of_a_model(self):
        native = clinic()
        native["factors"][0]["dense"]["values"] = [random.random() for _ in range(3)]  # nobody else's
        digest = self.client.models.put(native)["digest"]
        self.assertEqual(self.client.models.put(native)["digest"], digest)
        for name in (digest, digest[:12]):
            with self.assertWarns(basetensor.AnswerWarning):
                got = self.client.marginals(name, {"cough": "yes"}, targets=["season"])
            self.assertClose(got["season"]["wet"], Truth(native, DYSPNOEA).p(season="wet"))
        back = self.client.models.get(digest)
        self.assertEqual([v["name"] for v in back["variables"]], [v["name"] for v in native["variables"]])
        self.assertIn(digest, [m["digest"] for m in self.client.models.list()])
        self.client.models.delete(digest)
        self.assertNotIn(digest, [m["digest"] for m in self.client.models.list()])
        with self.assertRaises(basetensor.NotFound):
            self.client.models.get(digest)

    def test_status(self):
        self.assertIsInstance(self.client.status(), dict)


class Async(Case):
    def test_many_at_one_time(self):
        async def ask():
            async with AsyncClient(URL, concurrency=8) as client:
                got = await asyncio.gather(*(client.marginals(clinic(), {"season": i % 3}, ["cough"]) for i in range(24)))
                job = await client.submit(clinic(), mpe=False, marginals=True)
                names = [e.name async for e in client.events(job)]
                await client.wait(job)
                return got, names

        got, names = asyncio.run(ask())
        for i, p in enumerate(got):
            season = ("dry", "wet", "cold")[i % 3]
            self.assertClose(p["cough"]["yes"], Truth(clinic(), {"season": {season: 1}}).p(cough="yes"))
        self.assertEqual(names[-1], "answer")


if __name__ == "__main__":
    unittest.main()
