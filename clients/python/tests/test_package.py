"""The package is built and installed without a network, whole, and the same whenever it is built."""

import base64
import csv
import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# The platform tags of a wheel with a program, by the platform of the program.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}


def built(folder, *programs):
    """Returns the paths of a wheel, a source distribution, and wheels with programs, PLATFORM=FILE each."""
    command = [sys.executable, os.path.join(PROJECT, "backend.py"), folder, *programs]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def here():
    """Returns the platform of this machine in the words of Go."""
    machine = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64", "ARM64": "arm64"}
    return f"{platform.system().lower()}/{machine.get(platform.machine(), platform.machine())}"


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Package(unittest.TestCase):
    def test_contents(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel, sdist = built(folder)
            sources = {"basetensor/" + f for f in os.listdir(os.path.join(PROJECT, "src", "basetensor")) if not f.startswith("__pyc")}
            with zipfile.ZipFile(wheel) as z:
                self.assertEqual(sources, {n for n in z.namelist() if ".dist-info/" not in n})
                self.assertIn("Requires-Python: >=3.9", z.read("basetensor-1.0.0.dist-info/METADATA").decode())
                record = z.read("basetensor-1.0.0.dist-info/RECORD").decode().split()
                self.assertEqual(len(record), len(z.namelist()))
            with tarfile.open(sdist) as t:
                names = t.getnames()
            self.assertTrue({"basetensor-1.0.0/" + n for n in ("backend.py", "pyproject.toml", "PKG-INFO")} <= set(names))
            self.assertTrue({"basetensor-1.0.0/src/" + s for s in sources} <= set(names))

    def test_the_same_bytes(self):
        digests = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                digests.append([digest(path) for path in built(folder)])
        self.assertEqual(*digests)

    def test_pip_needs_no_network(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
            self.skipTest("no pip")
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_CONFIG_FILE=os.devnull)
            for what in [PROJECT] + built(folder):
                into = os.path.join(folder, "into")
                command = [sys.executable, "-m", "pip", "install", "--no-deps", "--upgrade", "--target", into, what]
                out = subprocess.run(command, env=environment, capture_output=True, text=True)
                self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
                environment["PYTHONPATH"] = into
                ran = subprocess.run([sys.executable, "-c", "import basetensor; print(basetensor.__file__)"], env=environment,
                                     cwd=folder, capture_output=True, text=True)
                self.assertTrue(ran.stdout.startswith(into), ran.stdout + ran.stderr)

    def test_wheels_with_a_program(self):
        """One for each platform, the same as the one without, but for the program, its tags, and the list of files."""
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            with open(program, "wb") as f:
                f.write(bytes(range(256)) * 100)
            digests = []
            for into in ("one", "other"):
                plain, _, *wheels = built(os.path.join(folder, into), *(f"{p}={program}" for p in TAGS))
                digests.append([digest(path) for path in wheels])
            self.assertEqual(*digests)
            names = [os.path.basename(path) for path in wheels]
            self.assertEqual(names, [f"basetensor-1.0.0-py3-none-{tags}.whl" for tags in TAGS.values()])
            with zipfile.ZipFile(plain) as z:
                files = {n: z.read(n) for n in z.namelist() if not n.endswith(("/WHEEL", "/RECORD"))}
            for path, (name, tags) in zip(wheels, TAGS.items()):
                btn = "basetensor/bin/btn" + (".exe" if name.startswith("windows") else "")
                with zipfile.ZipFile(path) as z:
                    kept = {n: z.read(n) for n in z.namelist() if not n.endswith(("/WHEEL", "/RECORD"))}
                    self.assertEqual(kept.pop(btn), bytes(range(256)) * 100)
                    self.assertEqual(kept, files)
                    for entry in z.infolist():
                        self.assertEqual(entry.external_attr >> 16, 0o100755 if entry.filename == btn else 0o100644, entry)
                    wheel = z.read("basetensor-1.0.0.dist-info/WHEEL").decode().splitlines()
                    self.assertIn("Root-Is-Purelib: false", wheel)
                    self.assertEqual([x for x in wheel if x.startswith("Tag")], [f"Tag: py3-none-{t}" for t in tags.split(".")])
                    record = {row[0]: row for row in csv.reader(io.StringIO(z.read("basetensor-1.0.0.dist-info/RECORD").decode()))}
                    self.assertEqual(set(record), set(z.namelist()))
                    sha = base64.urlsafe_b64encode(hashlib.sha256(z.read(btn)).digest()).rstrip(b"=").decode()
                    self.assertEqual(record[btn][1:], [f"sha256={sha}", "25600"])
            with self.assertRaises(subprocess.CalledProcessError) as e:
                built(folder, f"plan9/386={program}")
            self.assertIn("'plan9/386' is no platform of a wheel: there are darwin/amd64", e.exception.stderr)

    @unittest.skipUnless(os.environ.get("BTN"), "no program: set BTN to a btn")
    def test_a_wheel_with_a_program_needs_nothing_else(self):
        """Installed without a network, it runs models where neither BTN nor PATH has a btn."""
        with tempfile.TemporaryDirectory() as folder:
            venv = os.path.join(folder, "venv")
            made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
            if made.returncode != 0:
                self.skipTest(f"no venv: {made.stdout}")
            scripts = os.path.join(venv, "Scripts" if os.name == "nt" else "bin")
            python = os.path.join(scripts, "python")
            *_, wheel = built(folder, f"{here()}={os.environ['BTN']}")
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("BTN", "PYTHON", "PIP"))}
            environment.update(PATH=scripts, PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1")
            install = [python, "-m", "pip", "install", "--no-index", "--only-binary", ":all:", wheel]
            out = subprocess.run(install, env=environment, capture_output=True, text=True)
            self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
            program = (
                "import basetensor\n"
                "from basetensor import _local\n"
                "print(_local.find())\n"
                "with basetensor.local() as client: print(client.probability('MARKOV 1 2 1 1 0 2\\n1 3', {0: 1}))\n"
            )
            out = subprocess.run([python, "-c", program], env=environment, cwd=folder, capture_output=True, text=True)
            self.assertEqual(out.returncode, 0, out.stderr)
            found, p = out.stdout.split()
            self.assertTrue(os.path.realpath(found).startswith(os.path.realpath(venv)), found)
            self.assertAlmostEqual(float(p), 0.75, 14)


if __name__ == "__main__":
    unittest.main()
