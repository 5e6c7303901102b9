"""Builds the package, by PEP 517 and the standard library alone: pip needs no network for it.

    python3 backend.py FOLDER        # a wheel and a source distribution

Files are the same bytes whenever they are built: they have the date of SOURCE_DATE_EPOCH, or that of the first one zip can have.
"""

import base64
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "basetensor"


def _project(key):
    """Returns a text of the table project in pyproject.toml."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        table = re.search(r"^\[project\]\n(.*?)(?=^\[)", f.read() + "\n[", re.M | re.S).group(1)
    return re.search(r'^%s = "(.*)"$' % re.escape(key), table, re.M).group(1)


def _stem():
    return "%s-%s" % (NAME, _project("version"))


def _date():
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315619200)  # 1980-01-02


def _read(path):
    with open(os.path.join(HERE, path), "rb") as f:
        return f.read()


def _sources(folder, wanted):
    """Returns the files of a folder, by their paths with slashes, in order."""
    found = []
    for at, _, files in os.walk(os.path.join(HERE, folder)):
        found += [os.path.relpath(os.path.join(at, f), HERE).replace(os.sep, "/") for f in files if wanted(f)]
    return sorted(found)


def _package():
    return _sources("src/" + NAME, lambda f: f.endswith(".py") or f == "py.typed")


def _metadata():
    lines = [
        "Metadata-Version: 2.1", "Name: " + NAME, "Version: " + _project("version"), "Summary: " + _project("description"),
        "License: Apache-2.0", "Requires-Python: " + _project("requires-python"), "Description-Content-Type: text/markdown", "",
    ]
    return "\n".join(lines).encode() + b"\n" + _read("README.md")


def _wheel(directory, contents):
    """Writes a wheel of some files, with what describes it."""
    info = _stem() + ".dist-info/"
    contents = dict(contents)
    contents[info + "METADATA"] = _metadata()
    contents[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: basetensor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for path, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    contents[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    name = _stem() + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, time.gmtime(_date())[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            out.writestr(entry, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {path[len("src/"):]: _read(path) for path in _package()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {"__editable__.%s.pth" % NAME: (os.path.join(HERE, "src") + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    files = {path: _read(path) for path in ["README.md", "backend.py", "pyproject.toml"] + _package()}
    files.update((path, _read(path)) for path in _sources("tests", lambda f: f.endswith(".py")))
    files["PKG-INFO"] = _metadata()
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as out:
        for path, data in files.items():
            entry = tarfile.TarInfo(_stem() + "/" + path)
            entry.size, entry.mtime = len(data), _date()
            out.addfile(entry, io.BytesIO(data))
    name = _stem() + ".tar.gz"
    with open(os.path.join(sdist_directory, name), "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=_date()) as out:
        out.write(tar.getvalue())
    return name


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for build in (build_wheel, build_sdist):
        print(os.path.join(sys.argv[1], build(sys.argv[1])))
