"""What the end-to-end tests of collecting share: TAP, programs, a Python with torch.

A test is a script that makes a Suite and calls its cases:

    suite = Suite(__doc__)
    for name, function in cases: suite.run(name, lambda: function(suite))
    sys.exit(suite.finish())

A case raises Skip when something is not there, and anything else when it fails.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
FAKES = os.path.join(SOURCE, "tests", "fakes")
sys.dont_write_bytecode = True


class Skip(Exception):
    pass


def torch_python():
    """A Python that can import torch: the system's, this one, or none (Skip)."""
    for python in ("/usr/bin/python3", sys.executable):
        if os.path.exists(python) and subprocess.run(
                [python, "-c", "import torch.distributed"], env={**os.environ, "PYTHONPATH": ""},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    raise Skip("no Python with torch (Debian: python3-torch)")


class Suite:
    def __init__(self, doc, extra=()):
        """extra: further arguments, as (names, options) of add_argument()."""
        parser = argparse.ArgumentParser(description=doc)
        parser.add_argument("--npuprof", required=True)
        parser.add_argument("-k", "--keep", action="store_true", help="keep the directories")
        parser.add_argument("cases", nargs="*")
        for names, options in extra:
            parser.add_argument(*names, **options)
        self.options = parser.parse_args()
        self.npuprof = os.path.abspath(self.options.npuprof)
        self.failed = self.passed = self.skipped = 0
        self.count = 0

    def run(self, name, function):
        """function(tmp), with a directory of its own that is removed after it."""
        if self.options.cases and name not in self.options.cases:
            return
        self.count += 1
        tmp = os.path.realpath(tempfile.mkdtemp(prefix="npuprof-test-"))
        begin = time.monotonic()
        try:
            function(tmp)
        except Skip as why:
            self.skipped += 1
            print(f"ok {self.count} - {name} # SKIP {why}", flush=True)
        except Exception:  # whatever it is, the other cases go on
            self.failed += 1
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            print(f"not ok {self.count} - {name}", flush=True)
            if self.options.keep:
                print(f"# kept: {tmp}", flush=True)
                return
        else:
            self.passed += 1
            print(f"ok {self.count} - {name} # {time.monotonic() - begin:.1f} s", flush=True)
        shutil.rmtree(tmp, ignore_errors=True)

    def finish(self):
        """The exit status: 0, 1, or 77 when every case was skipped."""
        print(f"1..{self.count}", flush=True)
        if self.failed:
            return 1
        return 77 if self.skipped and not self.passed else 0

    def call(self, *words, env=None, cwd=None, timeout=120, check=None, stdin=None):
        """Run npuprof; the result has returncode, stdout, stderr. check: the expected status."""
        done = subprocess.run([self.npuprof, *words], capture_output=True, text=True,
                              errors="replace", cwd=cwd, timeout=timeout, input=stdin,
                              env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})})
        if check is not None and done.returncode != check:
            raise AssertionError(f"npuprof {' '.join(words)}: exit {done.returncode}, not {check}\n"
                                 f"{done.stdout}\n{done.stderr}")
        return done
