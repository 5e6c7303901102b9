"""A service that the client starts itself, with the program that BTN names."""

import asyncio
import doctest
import gc
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

import basetensor
from basetensor import _local

BTN = os.environ.get("BTN")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
COIN = {"basetensor_model": 1, "variables": [{"name": "coin", "domain": 2, "states": ["head", "tail"]}]}
COIN["factors"] = [{"scope": [0], "dense": {"values": [3, 1]}}]

# A bound on waits, far above what they take.
PATIENCE = 120


def until(condition):
    """Waits until a condition holds, and returns whether it does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_served(url):
    host, port = url[len("http://") :].split(":")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


@unittest.skipUnless(BTN, "no program: set BTN to a btn")
class Local(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def script(self, text):
        """Runs a program in an interpreter of its own, whose temporary files are in this test's folder."""
        environment = dict(os.environ, TMPDIR=self.folder, TEMP=self.folder, TMP=self.folder)
        source = os.path.dirname(os.path.dirname(basetensor.__file__))
        environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
        program = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def test_a_service_for_a_block(self):
        with basetensor.local() as client:
            self.assertRegex(client.url, r"^http://127\.0\.0\.1:\d+$")
            self.assertEqual(repr(client), f"LocalClient({client.url!r})")
            self.assertAlmostEqual(client.marginals(COIN)["coin"]["head"], 0.75, 14)
            self.assertEqual(client.models.put(COIN, "coin")["name"], "coin")
            self.assertAlmostEqual(client.probability("coin", {"coin": "tail"}), 0.25, 14)
        self.assertFalse(is_served(client.url))
        client.close()  # again: nothing happens

    def test_two_at_one_time(self):
        with basetensor.local() as one, basetensor.local() as other:
            self.assertNotEqual(one.url, other.url)
            one.models.put(COIN, "coin")
            self.assertEqual([m["name"] for m in one.models.list()], ["coin"])
            self.assertEqual(other.models.list(), [])
            one.close()
            self.assertAlmostEqual(other.marginals(COIN)["coin"]["head"], 0.75, 14)

    def test_coroutines(self):
        async def ask(url):
            async with basetensor.AsyncClient(url) as client:
                return client.url, await client.marginals(COIN)

        with basetensor.local() as client:
            url, posteriors = asyncio.run(ask(client.url))
        self.assertEqual(url, client.url)
        self.assertAlmostEqual(posteriors["coin"]["tail"], 0.25, 14)

    def test_a_folder_outlives_it(self):
        folder = os.path.join(self.folder, "kept")
        with basetensor.local(folder=folder) as client:
            client.models.put(COIN, "coin")
        with basetensor.local(folder=folder) as client:
            self.assertAlmostEqual(client.marginals("coin")["coin"]["head"], 0.75, 14)

    def test_settings_of_other_services_do_not_count(self):
        other = {"BTN_GATEWAY": "off", "BTN_DIR": os.path.join(self.folder, "other"), "BTN_KEYS": "absent", "BTN_LOG_LEVEL": "loud"}
        with mock.patch.dict(os.environ, other):
            with basetensor.local() as client:
                self.assertAlmostEqual(client.marginals(COIN)["coin"]["head"], 0.75, 14)
        self.assertEqual(os.listdir(self.folder), [])

    def test_nothing_is_left_in_temporary_folders(self):
        program = self.script(
            """
            import basetensor
            with basetensor.local() as client:
                client.models.put("MARKOV 1 2 1 1 0 2\\n1 3", "coin")
                print(client.marginals("coin")["0"]["1"])
            """
        )
        out, _ = program.communicate()
        self.assertAlmostEqual(float(out), 0.75, 14)
        self.assertEqual(os.listdir(self.folder), [])

    def test_it_ends_with_the_last_reference(self):
        client = basetensor.local()
        url = client.url
        self.assertTrue(is_served(url))
        del client
        gc.collect()
        self.assertFalse(is_served(url))

    def test_it_ends_with_the_interpreter(self):
        program = self.script("import basetensor; client = basetensor.local(); print(client.url)")
        out, _ = program.communicate()
        self.assertEqual(program.returncode, 0)
        self.assertTrue(out.startswith("http://127.0.0.1:"), out)
        self.assertFalse(is_served(out.strip()))
        self.assertEqual(os.listdir(self.folder), [])

    def test_it_ends_when_the_interpreter_is_killed(self):
        program = self.script("import basetensor; client = basetensor.local(); print(client.url, flush=True); input()")
        url = program.stdout.readline().strip()
        self.assertTrue(is_served(url))
        program.kill()
        program.wait()
        self.assertTrue(until(lambda: not is_served(url)), "it goes on")
        self.assertTrue(until(lambda: os.listdir(self.folder) == []), os.listdir(self.folder))

    def test_a_call_after_its_end_says_so(self):
        """It is not waited for, as a gateway is that is busy."""
        with basetensor.local() as client:
            client._http.ended.__self__._child.kill()
            for _ in range(2):
                with self.assertRaisesRegex(basetensor.Infrastructure, f"^the service at {client.url} has ended with exit code"):
                    client.marginals(COIN)
        with basetensor.local() as client:
            pass
        with self.assertRaisesRegex(basetensor.Infrastructure, "has ended with exit code 0$"):
            client.marginals(COIN)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_fork_leaves_it_alone(self):
        with basetensor.local() as client:
            child = os.fork()
            if child == 0:
                client.close()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(is_served(client.url))

    @unittest.skipUnless(hasattr(os, "killpg"), "no process groups here")
    def test_an_interrupt_leaves_the_service(self):
        """A terminal, and a notebook, interrupts all processes of the group."""
        program = self.script(
            """
            import basetensor, signal
            signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in the background
            client = basetensor.local()
            try:
                print("waits", flush=True)
                input()
            except KeyboardInterrupt:
                print(client.probability("MARKOV 1 2 1 1 0 2\\n1 3", {0: 1}))
            """
        )
        self.assertEqual(program.stdout.readline(), "waits\n")
        os.killpg(program.pid, signal.SIGINT)
        self.assertAlmostEqual(float(program.communicate()[0]), 0.75, 14)

    def test_documentation(self):
        """The examples of the package and of its page are true."""
        page = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md")
        with open(page, encoding="utf-8") as f:
            blocks = re.findall(r"^```python\n(.*?)^```$", f.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 3)
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(ROOT)
        names = {}
        for text in (basetensor.__doc__, *blocks):
            said = io.StringIO()
            example = doctest.DocTestParser().get_doctest(text, names, "examples", None, None)
            failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.write, clear_globs=False)
            self.assertEqual(failed, 0, said.getvalue())
            self.assertGreater(tried, 0)
            names = example.globs


class Program(unittest.TestCase):
    """Which program is run, and what is said if it is none."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.packaged = self.program("packaged")
        self.on_path = self.program("btn")

    def program(self, name, text="#!/bin/sh\n"):
        path = os.path.join(self.folder, name + (".bat" if os.name == "nt" else ""))
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def find(self, btn=None, variable=None, packaged=None, path=""):
        with mock.patch.dict(os.environ, {"PATH": path, "BTN": variable or ""}), mock.patch.object(
            _local, "PACKAGED", packaged or os.path.join(self.folder, "absent")
        ):
            return _local.find(btn)

    def test_the_sequence_of_places(self):
        argument, variable = self.program("argument"), self.program("variable")
        everywhere = dict(btn=argument, variable=variable, packaged=self.packaged, path=self.folder)
        for want in (argument, variable, self.packaged, self.on_path):
            self.assertEqual(self.find(**everywhere), want)
            del everywhere[next(iter(everywhere))]
        with self.assertRaises(basetensor.Infrastructure) as e:
            self.find()
        for place in ("argument btn", "variable BTN", os.path.join(self.folder, "absent"), "PATH"):
            self.assertIn(place, str(e.exception))

    def test_one_that_is_named_has_to_be_there(self):
        absent = os.path.join(self.folder, "absent")
        for named in (dict(btn=absent), dict(variable=absent)):
            with self.assertRaisesRegex(basetensor.Infrastructure, re.escape(repr(absent))):
                self.find(packaged=self.packaged, path=self.folder, **named)

    @unittest.skipIf(os.name == "nt", "the programs are for sh")
    def test_one_that_does_not_start_shows_its_log(self):
        broken = self.program("broken", "#!/bin/sh\necho the disk is full >&2\nexit 7\n")
        with self.assertRaises(basetensor.Infrastructure) as e:
            basetensor.local(broken)
        self.assertRegex(str(e.exception), "(?s)broken up .*ended with exit code 7:.*the disk is full")
        garbage = self.program("garbage", "\0\0")
        with self.assertRaisesRegex(basetensor.Infrastructure, "garbage cannot be run"):
            basetensor.local(garbage)

    @unittest.skipIf(os.name == "nt", "the programs are for sh")
    def test_one_that_is_never_ready_is_ended(self):
        stuck = self.program("stuck", f"#!/bin/sh\necho $$ > {self.folder}/pid\necho slowly >&2\nexec {shutil.which('sleep')} 3600\n")
        pid = os.path.join(self.folder, "pid")
        with mock.patch.object(_local, "GRACE", 0.05), self.assertRaisesRegex(
            basetensor.Infrastructure, "was not ready within 0.5 s"
        ):
            basetensor.local(stuck, start_timeout=0.5)
        if os.path.exists(pid):  # else it was ended before its first line
            with open(pid) as f, self.assertRaises(ProcessLookupError):
                os.kill(int(f.read()), 0)

    def test_flags_that_are_wrong(self):
        if not BTN:
            self.skipTest("no program: set BTN to a btn")
        with self.assertRaisesRegex(basetensor.Infrastructure, "(?s)ended with exit code 2:.*--nonsense"):
            basetensor.local(flags=["--nonsense"])


if __name__ == "__main__":
    unittest.main()
