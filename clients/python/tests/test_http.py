"""What the client does over HTTP, against a server that follows a script: retries, events, cancelled coroutines, errors."""

import asyncio
import base64
import collections
import gzip
import hashlib
import json
import socket
import threading
import time
import unittest
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import basetensor
from basetensor import AsyncClient, Client

RESULT = {"job": "j", "query": 0, "status": "ok", "error": None, "exact": True, "method": "exact", "log_z": -1.5, "zero": False}

# A result with an answer to every question, and with warnings.
TOLD = {
    **RESULT,
    "warnings": ("the rows of table 3 did not sum to 1", "a second warning"),
    "marginals": [{"variable": 0, "p": [0.5, 0.5]}],
    "joint": {"variables": [0], "shape": [2], "p": [0.5, 0.5]},
    "ratio": {"p": 0.5, "ln": -0.7},
    "mpe": {"assignment": [0], "ln_weight": -2, "unique": True},
    "map": {"variables": [0], "assignment": [0], "ln_weight": -2, "exact": True},
    "samples": {"assignments": [[0]], "seed": 1},
    "gradients": {"by": [[1.0]]},
    "sensitivity": {"variable": 0, "value": 1, "p": 0.5, "derivatives": {}, "covaried": [], "tornado": []},
    "information": {"target": 0, "entropy": 0.5, "exact": True, "candidates": []},
}
EXPECTED = [(basetensor.AnswerWarning, text, __file__) for text in TOLD["warnings"]]
VERBS = (
    lambda client: client.marginals("alarm"),
    lambda client: client.joint("alarm", ["a"]),
    lambda client: client.probability("alarm", {"a": "y"}),
    lambda client: client.mpe("alarm"),
    lambda client: client.map("alarm", ["a"]),
    lambda client: client.sample("alarm", 1),
    lambda client: client.gradients("alarm"),
    lambda client: client.sensitivity("alarm", {"a": "y"}),
    lambda client: client.information("alarm", "a"),
    lambda client: client.ask_next("alarm", "a"),
)


def answer(job, *results):
    return {"job": job, "status": "ok", "error": None, "results": list(results or (RESULT,))}


class Server:
    """A server whose answers to a path come from a list of functions of the handler; the last one stays."""

    def __init__(self):
        self.script = {}
        self.seen = collections.defaultdict(list)  # path → bodies
        self.headers = []
        self.right = True  # every body came with its digest
        self.connections = set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                path = self.command + " " + self.path
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                digest = "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"
                server.right = server.right and self.headers.get("Content-Digest") == (digest if body else None)
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                self.body = json.loads(body) if body else None
                server.seen[path].append(self.body)
                server.headers.append(self.headers)
                server.connections.add(self.client_address)
                steps = server.script[path]
                step = steps.pop(0) if len(steps) > 1 else steps[0]
                step(self)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def says(status, body, **headers):
    def step(h):
        content = json.dumps(body(h) if callable(body) else body).encode()
        h.send_response(status)
        for k, v in headers.items():
            h.send_header(k.replace("_", "-"), v)
        h.send_header("Content-Length", str(len(content)))
        h.end_headers()
        h.wfile.write(content)

    return step


def error(status, code, **headers):
    return says(status, {"error": {"code": code, "message": "so it is", "stage": "gateway"}}, **headers)


def drops(h):
    h.close_connection = True
    h.connection.shutdown(socket.SHUT_RDWR)


def streams(*parts):
    def step(h):
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.end_headers()
        for p in parts:
            h.wfile.write(p.encode() if isinstance(p, str) else p(h))
            h.wfile.flush()
        h.close_connection = True

    return step


def event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


own = says(200, lambda h: answer(h.body["job"]))


class Case(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.client = Client(self.server.url, key="secret", timeout=20)
        self.addCleanup(self.client.close)

    def script(self, path, *steps):
        self.server.script[path] = list(steps)


class Sync(Case):
    def test_busy_and_broken_is_one_job(self):
        """Whatever goes wrong, the same job is asked for, and no other."""
        self.script("POST /v1/infer", error(503, "infrastructure", Retry_After="0.05"), drops, error(502, "infrastructure"), own)
        began = time.monotonic()
        a = self.client.infer("alarm", {"a": "yes"}, marginals=True)
        self.assertGreater(time.monotonic() - began, 0.05)
        seen = self.server.seen["POST /v1/infer"]
        self.assertGreaterEqual(len(seen), 4)
        self.assertEqual({json.dumps(b) for b in seen}, {json.dumps(seen[0])})
        self.assertEqual(a.job, seen[0]["job"])
        del seen[0]["job"]
        self.assertEqual(seen[0], {"model_name": "alarm", "evidence": {"a": "yes"}, "marginals": True, "conflict": True})
        self.assertEqual(self.server.headers[0]["Authorization"], "Bearer secret")

    def test_clients_say_whose_they_are(self):
        self.assertEqual(repr(self.client), f"Client({self.server.url!r})")
        self.assertEqual(repr(AsyncClient(self.server.url, key="0123456789abcdef")), f"AsyncClient({self.server.url!r})")  # and no key

    def test_damaged_on_the_way(self):
        """A request or a response that came with other bits is sent again, under the same id."""
        changed = says(200, lambda h: answer(h.body["job"]), Content_Digest="sha-256=:AAAA:")
        self.script("POST /v1/infer", error(503, "damaged", Retry_After="0"), changed, own)
        a = self.client.infer("alarm", marginals=True)
        seen = self.server.seen["POST /v1/infer"]
        self.assertEqual({b["job"] for b in seen}, {a.job})
        self.assertGreaterEqual(len(seen), 3)
        self.assertTrue(self.server.right, "a body came without its digest")
        self.script("POST /v1/infer", error(503, "damaged", Retry_After="0"))
        with self.assertRaises(basetensor.Damaged):
            Client(self.server.url, retries=1).infer("alarm")

    def test_two_calls_are_two_jobs_on_one_connection(self):
        self.script("POST /v1/infer", own)
        jobs = {self.client.infer("alarm").job for _ in range(3)}
        self.assertEqual(len(jobs), 3)
        self.assertEqual(len(self.server.connections), 1)

    def test_connection_that_was_closed_meanwhile(self):
        self.script("POST /v1/infer", own, drops, own)
        client = Client(self.server.url, retries=0)
        client.infer("alarm")
        client.infer("alarm")
        client.close()

    def test_retries_end(self):
        self.script("POST /v1/infer", error(503, "infrastructure", Retry_After="0"))
        with self.assertRaises(basetensor.Infrastructure) as e:
            Client(self.server.url, retries=3).infer("alarm")
        self.assertEqual(len(self.server.seen["POST /v1/infer"]), 4)
        self.assertEqual((e.exception.status, e.exception.stage, e.exception.message), (503, "gateway", "so it is"))
        self.script("POST /v1/infer", error(503, "infrastructure", Retry_After="3600"))
        with self.assertRaises(basetensor.Infrastructure):
            self.client.infer("alarm")  # the hour exceeds the timeout

    def test_nobody_there(self):
        with self.assertRaisesRegex(basetensor.Infrastructure, "127.0.0.1:1"):
            Client("http://127.0.0.1:1", retries=1).infer("alarm")
        for url in ("ftp://x", "http://", "http://x:port"):
            with self.assertRaises(basetensor.BadInput):
                Client(url)

    def test_errors_have_types(self):
        for status, code, kind in (
            (400, "bad_input", basetensor.BadInput),
            (401, "bad_input", basetensor.Unauthorized),
            (403, "bad_input", basetensor.Unauthorized),
            (404, "bad_input", basetensor.NotFound),
            (409, "bad_input", basetensor.Conflict),
            (409, "cancelled", basetensor.Cancelled),
            (413, "over_budget", basetensor.OverBudget),
            (422, "unsupported", basetensor.Unsupported),
            (422, "failed_estimate", basetensor.FailedEstimate),
            (500, "internal", basetensor.Internal),
            (504, "deadline", basetensor.Deadline),
            (418, "later", basetensor.BasetensorError),
        ):
            self.script("POST /v1/infer", error(status, code))
            with self.assertRaises(kind) as e:
                self.client.infer("alarm")
            self.assertEqual(e.exception.status, status)
            self.assertTrue(e.exception.job.startswith("py-"))
            self.assertIs(type(e.exception), kind)
        self.assertEqual(len(self.server.seen["POST /v1/infer"]), 12, "none of these is asked twice")
        self.script("POST /v1/infer", says(400, "no object"))
        with self.assertRaisesRegex(basetensor.BadInput, "HTTP status 400"):
            self.client.infer("alarm")
        self.script("POST /v1/infer", says(200, [1]))
        with self.assertRaisesRegex(basetensor.Internal, "a list where an object belongs"):
            self.client.infer("alarm")

    def test_job_errors(self):
        info = {"code": "over_budget", "message": "too wide", "stage": "learn-worker"}
        self.script("POST /v1/infer", says(200, {"job": "j", "status": "error", "error": info, "results": []}))
        with self.assertRaisesRegex(basetensor.OverBudget, "too wide"):
            self.client.infer("alarm")
        busy = {**info, "code": "infrastructure"}
        self.script("POST /v1/infer", says(503, {"job": "j", "status": "error", "error": busy, "results": []}))
        with self.assertRaises(basetensor.Infrastructure):
            self.client.infer("alarm")
        self.assertEqual(len(self.server.seen["POST /v1/infer"]), 2, "a job that failed is not asked for again")
        failed = {**RESULT, "status": "error", "error": info, "log_z": None}
        self.script("POST /v1/infer", says(200, answer("j", failed)))
        self.assertIsInstance(self.client.infer("alarm")[0].error, basetensor.OverBudget)
        with self.assertRaises(basetensor.OverBudget):
            self.client.marginals("alarm")
        self.script("POST /v1/infer", says(200, answer("j", {**RESULT, "zero": True, "log_z": None})))
        with self.assertRaises(basetensor.Impossible):
            self.client.mpe("alarm")

    def test_verbs_tell_warnings(self):
        """Whatever a verb returns, the answer's warnings are Python warnings at the line of its call."""
        self.script("POST /v1/infer", says(200, lambda h: answer(h.body["job"], TOLD)))
        for ask in VERBS:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                ask(self.client)
            self.assertEqual([(w.category, str(w.message), w.filename) for w in told], EXPECTED)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertEqual(self.client.infer("alarm")[0].warnings, TOLD["warnings"])
        self.assertEqual(told, [], "an answer has its warnings")
        with warnings.catch_warnings():
            warnings.simplefilter("error", basetensor.AnswerWarning)
            with self.assertRaisesRegex(basetensor.AnswerWarning, "table"):
                self.client.marginals("alarm")

    def test_timeout_names_the_job(self):
        gone = threading.Event()
        self.addCleanup(gone.set)
        self.script("POST /v1/infer", lambda h: gone.wait(30))
        for timeout in (0.1, 1, 10):  # a busy machine may not even send the request in time
            with self.assertRaises(basetensor.Timeout) as e:
                self.client.infer("alarm", timeout=timeout)
            self.assertIsInstance(e.exception, TimeoutError)
            if self.server.seen["POST /v1/infer"]:
                break
        self.assertEqual(e.exception.job, self.server.seen["POST /v1/infer"][-1]["job"])

    def test_events_over_broken_connections(self):
        """Events go on over another connection; an answer that came in between is found."""
        self.script("POST /v1/infer", says(202, lambda h: {"job": h.body["job"], "digest": "d"}))
        job = self.client.submit("alarm", job="j", marginals=True)
        self.assertEqual((job, self.server.seen["POST /v1/infer"][0]["async"]), ("j", True))
        told = []
        path = "/v1/jobs/j"
        self.script("GET " + path + "/events",
            streams(": heartbeat\n\n", event("progress", {"done": 1})),
            drops,
            streams(event("progress", {"done": 2}), event("answer", answer("j"))))
        self.script("GET " + path, says(200, {"job": "j", "status": "pending"}))
        a = self.client.wait("j", progress=told.append)
        self.assertEqual((a.job, a[0].log_z, told), ("j", -1.5, [{"done": 1}, {"done": 2}]))
        self.script("GET " + path + "/events", drops)
        self.script("GET " + path, says(200, answer("j")))
        self.assertEqual([e.name for e in self.client.events("j")], ["answer"])
        self.script("GET " + path + "/events", error(404, "bad_input"))
        with self.assertRaises(basetensor.NotFound):
            self.client.wait("j")

    def test_answer_that_takes_longer_than_the_gateway_waits(self):
        self.script("GET /v1/jobs/j/events", streams(event("answer", answer("j"))))
        late = {"code": "deadline", "message": "no answer yet", "stage": "gateway"}
        for status, info in ((202, None), (504, late)):
            said = {"job": "j", "digest": "d", "status": "pending", "error": info, "results": []}
            self.script("POST /v1/infer", says(status, said))
            self.assertEqual(self.client.infer("alarm", job="j").job, "j")

    def test_wait_ends_in_time(self):
        gone = threading.Event()
        self.addCleanup(gone.set)
        self.script("GET /v1/jobs/j/events", lambda h: gone.wait(30))
        with self.assertRaises(basetensor.Timeout):
            self.client.wait("j", timeout=0.1)

    def test_wait_outlasts_a_busy_gateway(self):
        self.script("GET /v1/jobs/j/events", error(503, "infrastructure"), error(429, "over_budget"), streams(event("answer", answer("j"))))
        self.script("GET /v1/jobs/j", says(200, {"job": "j", "status": "pending"}))
        self.assertEqual(self.client.wait("j").job, "j")

    def test_body_that_drips_ends_in_time(self):
        whole = threading.Event()

        def drips(h):
            h.send_response(200)
            h.send_header("Content-Length", "1000000")
            h.end_headers()
            try:
                for _ in range(600):
                    h.wfile.write(b" ")
                    time.sleep(0.05)
                whole.set()
            except OSError:
                pass  # nobody reads any more
            h.close_connection = True

        self.script("GET /v1/status", drips)
        with self.assertRaises(basetensor.Timeout):
            self.client.status(timeout=1)
        self.assertFalse(whole.is_set())

    def test_secrets_are_not_quoted(self):
        self.script("GET /v1/status", says(200, {}))
        with Client(self.server.url, key="secret\n") as client:
            client.status()
        self.assertEqual(self.server.headers[-1]["Authorization"], "Bearer secret")
        url = self.server.url
        for url, key in ((url, "top\nsecret"), (url, "secrét"), ("http://me:secret@x:port", None), (url, "")):
            with self.assertRaises(basetensor.BadInput) as e:
                Client(url, key=key).status()
            self.assertNotIn("secr", str(e.exception))

    def test_large_bodies_are_compressed(self):
        self.script("POST /v1/infer", own)
        self.client.infer({"basetensor_model": 1, "description": "x" * 300_000})
        self.assertEqual(self.server.headers[-1]["Content-Encoding"], "gzip")
        self.assertEqual(len(self.server.seen["POST /v1/infer"][-1]["model"]["description"]), 300_000)

    def test_bounds(self):
        bounds = {"lower": -2, "upper": None, "level": 0.999, "how": "below by means"}
        estimate = dict(RESULT, exact=False, bounds=bounds)
        self.script("POST /v1/infer", says(200, lambda h: answer(h.body["job"], estimate, RESULT)))
        estimate, exact = self.client.infer("alarm", queries=[{}, {}])
        self.assertEqual(estimate.bounds, basetensor.Bounds(-2.0, None, 0.999, "below by means"))
        self.assertIsNone(exact.bounds)

    def test_weighted_samples(self):
        weighted = dict(RESULT, samples={"assignments": [[1, 0], [0, 0]], "weights": [0.75, 0.25], "effective": 1.6, "seed": 0})
        self.script("POST /v1/infer", says(200, lambda h: answer(h.body["job"], weighted, dict(RESULT, samples={"assignments": [[1]], "seed": 0}))))
        weighted, plain = self.client.infer("alarm", queries=[{}, {}])
        self.assertEqual(weighted.samples, [{"0": "1", "1": "0"}, {"0": "0", "1": "0"}])
        self.assertEqual((weighted.samples.weights, weighted.samples.effective), ([0.75, 0.25], 1.6))
        self.assertIsNone(plain.samples.weights)

    def test_queries_and_settings(self):
        self.script("POST /v1/infer", own)
        client = Client(self.server.url + "/", tenant="acme")
        client.infer("alarm", queries=[{"marginals": True}, {"evidence": {"a": 1}}], settings={"method": "exact"}, deadline=1.5)
        body = self.server.seen["POST /v1/infer"][-1]
        del body["job"]
        self.assertEqual(
            body,
            {
                "model_name": "alarm",
                "queries": [{"marginals": True}, {"evidence": {"a": 1}, "conflict": True}],
                "settings": {"method": "exact"},
                "tenant": "acme",
                "deadline_ms": 1500,
            },
        )
        with self.assertRaises(basetensor.BadInput):
            client.infer("alarm", {"a": 1}, queries=[{}])
        with self.assertRaises(basetensor.BadInput):
            client.infer({"basetensor_model": float("nan")})

    def test_models(self):
        self.script("PUT /v1/models/a%20b?format=json", says(200, {"name": "a b", "version": 1}))
        self.assertEqual(self.client.models.put({"basetensor_model": 1}, "a b")["version"], 1)
        self.script("POST /v1/models?format=json", says(201, {"digest": "d"}))
        self.assertEqual(self.client.models.put({"basetensor_model": 1}), {"digest": "d"})
        self.script("GET /v1/models/alarm@3?format=bif", lambda h: says(200, {})(h))
        self.assertEqual(self.client.models.get("alarm@3", format="bif"), "{}")
        self.script("GET /v1/models", says(200, {"models": [{"name": "a"}]}))
        self.assertEqual(self.client.models.list(), [{"name": "a"}])
        self.script("DELETE /v1/models/alarm", says(200, {}))
        self.client.models.delete("alarm")
        with self.assertRaises(basetensor.BadInput):
            self.client.models.put("a-registered-name")


class Async(Case):
    def run_async(self, f):
        async def main():
            async with AsyncClient(self.server.url, timeout=20) as client:
                return await f(client)

        return asyncio.run(main())

    def test_many_at_one_time(self):
        everybody = threading.Barrier(8)

        def meet(h):
            everybody.wait(20)
            own(h)

        self.script("POST /v1/infer", meet)

        async def ask(client):
            return await asyncio.gather(*(client.infer("alarm") for _ in range(8)))

        answers = self.run_async(ask)
        self.assertEqual(len({a.job for a in answers}), 8)

    def test_verbs_tell_warnings(self):
        """Warnings are told where a verb is awaited, not in its thread."""
        self.script("POST /v1/infer", says(200, lambda h: answer(h.body["job"], TOLD)))

        async def ask(client):
            for verb in VERBS:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    await verb(client)
                self.assertEqual([(w.category, str(w.message), w.filename) for w in told], EXPECTED)

        self.run_async(ask)

    def test_cancelled_call_ends(self):
        """The thread of a cancelled call ends as well, although the server says nothing."""
        gone, came = threading.Event(), threading.Event()
        self.addCleanup(gone.set)

        def silent(h):
            came.set()
            gone.wait(30)

        self.script("POST /v1/infer", silent)

        async def ask(client):
            call = asyncio.ensure_future(client.infer("alarm", timeout=None))
            await asyncio.get_running_loop().run_in_executor(None, came.wait, 20)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            await asyncio.get_running_loop().run_in_executor(None, client._threads._pool.shutdown)

        began = time.monotonic()
        self.run_async(ask)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(len(self.server.seen["POST /v1/infer"]), 1, "nor is it sent again")

    def test_events_and_progress(self):
        self.script("GET /v1/jobs/j/events", streams(event("progress", {"done": 1}), event("answer", answer("j"))))

        async def ask(client):
            names = [e.name async for e in client.events("j")]
            async for _ in client.events("j"):
                break  # a stream that is left early
            told = []
            a = await client.wait("j", progress=told.append)
            await asyncio.sleep(0)
            return names, a.job, told

        self.assertEqual(self.run_async(ask), (["progress", "answer"], "j", [{"done": 1}]))


if __name__ == "__main__":
    unittest.main()
