"""The package is built and installed without a network, whole, and the same whenever it is built."""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def built(folder):
    """Returns the paths of a wheel and a source distribution."""
    out = subprocess.run([sys.executable, os.path.join(PROJECT, "backend.py"), folder], check=True, capture_output=True, text=True)
    return out.stdout.split()


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


if __name__ == "__main__":
    unittest.main()
