"""What bad_input.py's cases share: base captures, runs, and what must hold for each."""
import json
import os
import shutil
import stat
import subprocess
import sys
import threading

TIMEOUT_S = 20
RSS_FLOOR = 200 << 20
NOBODY = 65534
SANITIZERS = (b"AddressSanitizer", b"LeakSanitizer", b"runtime error:", b"UndefinedBehavior",
              b"ThreadSanitizer")
COMMANDS = (("info", "--json"), ("check", "--json", "--start-epoch", "1"))
SPOKEN = (("info", "--color", "never"), ("info", "--format", "csv"), ("info", "--format", "md"),
          ("check", "-v"), ("check", "--format", "md"), ("check", "--format", "csv"))


class Failure(Exception):
    """A run that broke one of the promises."""


def snapshot(top):
    """Everything below `top` that a reader could have changed."""
    seen = {}
    pending = [os.fsencode(top)]
    while pending:
        path = pending.pop()
        try:
            info = os.lstat(path)
        except OSError as error:
            seen[path] = error.errno
            continue
        kind = stat.S_IFMT(info.st_mode)
        size = 0 if kind == stat.S_IFDIR else info.st_size
        seen[path] = (info.st_mode, size, info.st_mtime_ns, info.st_ino)
        if kind == stat.S_IFDIR:
            try:
                pending += [os.path.join(path, name) for name in os.listdir(path)]
            except OSError as error:
                seen[path] += (error.errno,)
    return seen


def disk_bytes(top):
    total = 0
    for folder, _, files in os.walk(os.fsencode(top)):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                pass
    if not os.path.isdir(top):
        total = os.stat(top).st_blocks * 512
    return total


class Run:
    """One finished process."""

    def __init__(self, command, status, out, err, rss, seconds, hung):
        self.command, self.status, self.out, self.err = command, status, out, err
        self.rss, self.seconds, self.hung = rss, seconds, hung


class Runner:
    """A small process that starts the programs, see bad_runner.py."""

    def __init__(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_runner.py")
        self.process = subprocess.Popen([sys.executable, "-B", script], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, command, scratch, env, uid):
        out, err = os.path.join(scratch, "out"), os.path.join(scratch, "err")
        command = [os.fsdecode(word) for word in command]
        print(json.dumps({"command": command, "out": out, "err": err, "env": env, "uid": uid,
                          "timeout": TIMEOUT_S}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the runner ended")
        answer = json.loads(line)
        with open(out, "rb") as file_out, open(err, "rb") as file_err:
            return Run(command, answer["status"], file_out.read(), file_err.read(),
                       answer["rss"], answer["seconds"], answer["hung"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Lab:
    """Base captures, the programs, and figures over all runs."""

    def __init__(self, top, program, release, full, keep):
        self.top, self.full, self.keep = top, full, keep
        self.program = self.install(program, "npuprof")
        self.release = self.install(release, "npuprof-release") if release else None
        self.bases, self.lock, self.local = {}, threading.Lock(), threading.local()
        self.runs, self.max_rss, self.max_seconds = 0, {}, {}
        for form in ("text", "db", "msprof"):
            self.bases[form] = os.path.join(top, "base-" + form)
            subprocess.run([self.program, "synth", "--ranks", "2", "--format", form,
                            "--set-mtimes", self.bases[form]], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.remove(os.path.join(self.bases[form], "truth.json"))
        self.kernels = {form: self.count_kernels(base) for form, base in self.bases.items()}

    def install(self, program, name):
        """A copy where an unprivileged user can run it, too."""
        copy = os.path.join(self.top, name)
        shutil.copyfile(program, copy)
        os.chmod(copy, 0o755)
        return copy

    def count_kernels(self, base):
        out = subprocess.run([self.program, "info", "--json", base], check=True,
                             stdout=subprocess.PIPE).stdout
        return kernels_by_rank(json.loads(out))

    def shelf(self, name):
        return Shelf(self, name)

    def runner(self):
        """The runner of this thread."""
        if not hasattr(self.local, "runner"):
            self.local.runner = Runner()
        return self.local.runner

    def ranks(self, form):
        """The directories of the ranks, sorted."""
        base = self.bases[form]
        return sorted(name for name in os.listdir(base)
                      if os.path.isdir(os.path.join(base, name)))

    def files(self, form):
        """Paths of the first rank's files, relative to the base."""
        base, rank = self.bases[form], self.ranks(form)[0]
        found = []
        for folder, _, files in os.walk(os.path.join(base, rank)):
            found += [os.path.relpath(os.path.join(folder, name), base) for name in files]
        return sorted(found)

    def note(self, name, run, measured):
        with self.lock:
            self.runs += 1
            if measured:
                self.max_rss[name] = max(run.rss, self.max_rss.get(name, 0))
            self.max_seconds[name] = max(run.seconds, self.max_seconds.get(name, 0))

    def print_figures(self):
        def worst(table, unit):
            top = sorted(table.items(), key=lambda item: -item[1])[:5]
            return ", ".join(f"{value / unit:.1f} {name}" for name, value in top)
        print(f"# {self.runs} runs; slowest (s): {worst(self.max_seconds, 1)}")
        if self.release:
            print(f"# peak memory of the release build (MB): {worst(self.max_rss, 1e6)}")
        else:
            print("# no release build at hand: memory was not measured")


def kernels_by_rank(document):
    for table in document["tables"]:
        if table["id"] == "captures":
            names = [column["name"] for column in table["columns"]]
            rank, kernels = names.index("rank"), names.index("kernels")
            return {row[rank]: row[kernels] for row in table["rows"]}
    return {}


class Shelf:
    """The place of one case: a tree to spoil, a TMPDIR, and the promises."""

    def __init__(self, lab, name):
        self.lab, self.name, self.failed = lab, name, False
        self.top = os.path.join(lab.top, "".join(c if c.isalnum() else "-" for c in name)[:80])
        self.tree = os.path.join(self.top, "tree")
        self.temp = os.path.join(self.top, "tmp")
        self.scratch = os.path.join(self.top, "scratch")
        for path in (self.top, self.temp, self.scratch):
            os.makedirs(path, exist_ok=True)
        os.chmod(self.temp, 0o777)
        self.env = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH")
                    if key in os.environ}
        self.env.update(
            TMPDIR=self.temp, LC_ALL="C.UTF-8",
            ASAN_OPTIONS="exitcode=99:allocator_may_return_null=1:detect_stack_use_after_return=1",
            UBSAN_OPTIONS="exitcode=99:print_stacktrace=1", LSAN_OPTIONS="exitcode=99")

    def remove(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.top], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", self.top], check=False, stderr=subprocess.DEVNULL)

    def base(self, form):
        """A fresh copy of a base capture as the tree; the directories of its ranks."""
        if os.path.lexists(self.tree):
            subprocess.run(["rm", "-rf", self.tree], check=True)
        shutil.copytree(self.lab.bases[form], self.tree, symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", self.tree], check=True)
        return [os.path.join(self.tree, name) for name in self.lab.ranks(form)]

    def fail(self, what, run=None):
        self.failed = True
        text = f"{self.note}: {what}" if self.note else what
        if run:
            text += "\n" + " ".join(map(os.fsdecode, run.command))[:600]
            text += f"\nstatus {run.status}, {run.seconds:.1f} s, {run.rss >> 20} MB"
            for line in run.err.splitlines()[:40]:
                text += "\n  " + line[:300].decode("utf-8", "backslashreplace")
        raise Failure(text)

    note = ""

    def verify(self, note="", path=None, form=None, healthy=None, told=False, statuses=None,
               as_nobody=False, spoken=False, tree=None, memory=2):
        """
        Run the commands on `path` (the tree) and hold them to the promises.
        form + healthy: ranks that must be reported as in the base of that form.
        told: the damage must be told: a finding of info, or a status of check but 0.
        statuses: those allowed for (info, check).
        memory: how often all that lies on disk may be in memory at once.
        """
        self.note = note
        path = self.tree if path is None else path
        tree = tree or self.tree
        before = snapshot(tree)
        limit = max(RSS_FLOOR, memory * disk_bytes(tree))
        documents = []
        for i, words in enumerate(COMMANDS + (SPOKEN if spoken else ())):
            run = self.one([self.lab.program, *words, path], as_nobody)
            if i < len(COMMANDS):
                documents.append((run, self.parse(run)))
                if statuses and run.status not in statuses[i]:
                    self.fail(f"status {run.status}, expected one of {statuses[i]}", run)
            elif b"\x1b" in run.out or b"\x1b" in run.err:
                self.fail("an escape byte reached the output", run)
            if self.lab.release:
                run = self.one([self.lab.release, *words, path], as_nobody, True)
                if run.rss > limit:
                    self.fail(f"peak memory {run.rss >> 20} MB > {limit >> 20} MB", run)
        if snapshot(tree) != before:
            self.fail("the capture was changed")
        if os.listdir(self.temp):
            self.fail(f"left in TMPDIR: {os.listdir(self.temp)[:3]}")
        self.judge(documents, form, healthy, told)

    def attempt(self, note):
        """Run the commands where nothing can be said about what they find."""
        self.note = note
        for words in COMMANDS:
            self.parse(self.one([self.lab.program, *words, self.tree], False))

    def one(self, command, as_nobody, measured=False):
        uid = NOBODY if as_nobody and os.getuid() == 0 else None
        run = self.lab.runner().run(command, self.scratch, self.env, uid)
        self.lab.note(self.name, run, measured)
        if run.hung:
            self.fail(f"it does not end: {TIMEOUT_S} s of processor time, or {6 * TIMEOUT_S} s in all", run)
        if any(word in run.err for word in SANITIZERS):
            self.fail("a sanitizer reports", run)
        if run.status not in (0, 1, 2, 3, 4):
            self.fail(f"status {run.status}", run)
        if b"out of memory" in run.err:
            self.fail("it ran out of memory", run)
        if not run.out and not run.err.startswith(b"npuprof: "):
            self.fail("it says nothing", run)
        if b"\x1b" in run.out or b"\x1b" in run.err:
            self.fail("an escape byte reached the output", run)
        return run

    def parse(self, run):
        if not run.out:
            return None
        try:
            document = json.loads(run.out.decode("utf-8"))
        except ValueError as error:
            self.fail(f"stdout is not one JSON document: {error}", run)
        if document["exit_code"] != run.status:
            self.fail(f"exit_code {document['exit_code']} is not the status", run)
        return document

    def judge(self, documents, form, healthy, told):
        (info, document), (check, _) = documents
        if healthy is not None:
            if document is None:
                self.fail("no report: the healthy ranks are lost", info)
            found = kernels_by_rank(document)
            for rank in healthy:
                if found.get(rank) != self.lab.kernels[form][rank]:
                    self.fail(f"rank {rank} is reported as {found}", info)
        if told and document and not document["findings"] and check.status == 0:
            self.fail("nobody tells the damage", check)
