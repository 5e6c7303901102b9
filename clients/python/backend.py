"""Builds the package, by PEP 517 and the standard library alone: pip needs no network for it.

    python3 backend.py FOLDER                          # a wheel and a source distribution
    python3 backend.py FOLDER linux/amd64=FILE …       # and for each platform a wheel with this btn in it

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

# Where a wheel has the program, without the .exe of Windows.
PROGRAM = NAME + "/bin/btn"

# The tags of wheels by the platform of the program in them, which is static: it needs no C library of a certain kind, and of Linux a
# kernel that is older than all systems with these tags. Programs of Go 1.26 need macOS 12.
TAGS = {
    "linux/amd64": ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"],
    "linux/arm64": ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"],
    "darwin/amd64": ["macosx_12_0_x86_64"],
    "darwin/arm64": ["macosx_12_0_arm64"],
    "windows/amd64": ["win_amd64"],
    "windows/arm64": ["win_arm64"],
}


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


def _wheel(directory, contents, tags=("any",)):
    """Writes a wheel of some files, with what describes it, and returns its name. A program in it may be executed."""
    info = _stem() + ".dist-info/"
    contents = dict(contents)
    contents[info + "METADATA"] = _metadata()
    lines = ["Wheel-Version: 1.0", "Generator: basetensor", "Root-Is-Purelib: " + ("true" if tags == ("any",) else "false")]
    contents[info + "WHEEL"] = "".join(line + "\n" for line in lines + ["Tag: py3-none-" + tag for tag in tags]).encode()
    record = ""
    for path, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    contents[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    name = "%s-py3-none-%s.whl" % (_stem(), ".".join(tags))
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, time.gmtime(_date())[:6])
            entry.create_system = 3  # Unix, wherever it is built: attributes have permissions
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if path.startswith(PROGRAM) else 0o100644) << 16
            out.writestr(entry, data)
    return name


def _modules():
    return {path[len("src/"):]: _read(path) for path in _package()}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, _modules())


def build_wheel_with(wheel_directory, platform, program):
    """Builds a wheel for a platform, as OS/ARCHITECTURE in the words of Go, with the program in a file."""
    if platform not in TAGS:
        raise SystemExit("%r is no platform of a wheel: there are %s" % (platform, ", ".join(sorted(TAGS))))
    end = ".exe" if platform.startswith("windows/") else ""
    with open(program, "rb") as f:
        return _wheel(wheel_directory, {**_modules(), PROGRAM + end: f.read()}, TAGS[platform])


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
    for argument in sys.argv[2:]:
        print(os.path.join(sys.argv[1], build_wheel_with(sys.argv[1], *argument.split("=", 1))))
