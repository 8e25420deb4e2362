"""Cases of directory trees and archives."""
import gzip
import io
import os
import shutil
import tarfile
import zipfile

from bad_files import NASTY, read, sample, write

ANY = (0, 1, 2, 3, 4)


def names(shelf):
    """Captures, groups and files with names for terminals, browsers and spreadsheets."""
    rank, healthy = shelf.base("text")
    odd = [text.replace("/", "_").replace("\0", "")[:200] for text in NASTY]
    odd = [os.fsencode(text) for text in odd if text] + [b"\xff\xfe\x80", b"-rf", b"--help", b" ", b"~",
                                                 b"a\rb", b"x" * 240]
    for i, name in enumerate(odd):
        for place in (os.fsencode(shelf.tree) + b"/" + name + b"_1_20250601080000000_ascend_pt",
                      os.fsencode(shelf.tree) + b"/" + name + b"/r_ascend_pt"):
            if len(os.path.basename(place)) < 255:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copytree(os.fsencode(rank), place)
                info = place + b"/profiler_info_0.json"
                os.rename(info, place + b"/profiler_info_%d.json" % (10 + 2 * i))
        output = os.fsencode(rank) + b"/ASCEND_PROFILER_OUTPUT/"
        for ending in (b".csv", b"_kernel_details.csv"[:254 - len(name)], b".json"):
            write(output + name + ending, b"Name,Duration(us)\n")
    shelf.verify("odd names", form="text", healthy=[1], spoken=True)
    for name in sample(shelf.lab, odd, 8):
        place = os.fsencode(shelf.tree) + b"/" + name
        if os.path.isdir(place):
            shelf.verify(f"a path named {name!r}", path=place + b"/", spoken=True)


def nasty_content(shelf):
    """Texts from inside a capture that reports show."""
    for text in NASTY:
        rank = shelf.base("text")[0]
        kernels = os.path.join(rank, "ASCEND_PROFILER_OUTPUT", "kernel_details.csv")
        quoted = '"' + text.replace('"', '""') + '"'
        write(kernels, read(kernels).replace(b"AI_CORE", quoted.encode("utf-8")))
        info = os.path.join(rank, "profiler_info_0.json")
        plain = "".join(f"\\u{ord(c):04x}" for c in text[:2000])
        for word in (b"Level1", b"8.3.RC1", b"2.7.1", b"PipeUtilization"):
            write(info, read(info).replace(word, plain.encode()))
        meta = os.path.join(rank, "profiler_metadata.json")
        write(meta, read(meta).replace(b"group_name_0", plain.encode())
              .replace(b"default_group", plain.encode()))
        for folder, _, files in os.walk(os.path.join(rank, "logs")):
            for name in files:
                with open(os.path.join(folder, name), "ab") as log:
                    log.write(b"\n[ERROR] " + text.encode("utf-8") + b" failed to parse\n")
        shelf.verify(f"content {text[:40]!r}", form="text", healthy=[1], spoken=True)


def odd_times(shelf):
    """Files from before and long after our time."""
    shelf.base("text")
    for seconds in (-2000000000, 0, 1 << 33, 15000000000, 1 << 62):
        for folder, _, files in os.walk(shelf.tree):
            for name in files:
                try:
                    os.utime(os.path.join(folder, name), (seconds, seconds))
                except OverflowError:
                    pass
        shelf.verify(f"mtime {seconds}", form="text", healthy=[0, 1])


def cycles(shelf):
    ranks = shelf.base("text")
    os.symlink(".", os.path.join(shelf.tree, "self"))
    os.symlink("..", os.path.join(ranks[0], "up"))
    os.symlink(shelf.tree, os.path.join(shelf.tree, "again_ascend_pt"))
    os.symlink(os.path.basename(ranks[0]), os.path.join(shelf.tree, "copy_ascend_pt"))
    os.symlink("b", os.path.join(shelf.tree, "a"))
    os.symlink("a", os.path.join(shelf.tree, "b"))
    os.symlink("/", os.path.join(ranks[0], "FRAMEWORK"))
    os.symlink(".", os.path.join(ranks[0], "PROF_000001_20250601080000000_ABCDEFGH"))
    os.symlink("..", os.path.join(ranks[0], "ASCEND_PROFILER_OUTPUT", "host"))
    os.makedirs(os.path.join(shelf.tree, "p", "q"))
    os.symlink("../../p", os.path.join(shelf.tree, "p", "q", "p"))
    shelf.verify("links in circles", form="text", healthy=[0, 1])


def many_directories(shelf):
    shelf.base("text")
    for i in range(20000):
        os.makedirs(os.path.join(shelf.tree, f"d{i % 100}", f"e{i}"))
    shelf.verify("20,000 directories", form="text", healthy=[0, 1])


def many_captures(shelf):
    """Each with a configuration of its own."""
    shelf.base("text")
    n = 5000 if shelf.lab.full else 2000
    for i in range(n):
        place = os.path.join(shelf.tree, f"many/w_{i}_20250601080000000_ascend_pt")
        os.makedirs(place)
        write(os.path.join(place, f"profiler_info_{i + 2}.json"),
              b'{"config":{"common_config":{},"experimental_config":'
              b'{"_profiler_level":"L%d"}}}' % i)
    shelf.verify(f"{n} empty captures", form="text", healthy=[0, 1])


def many_files(shelf):
    rank = shelf.base("text")[0]
    output = os.path.join(rank, "ASCEND_PROFILER_OUTPUT")
    for i in range(20000):
        write(os.path.join(output, f"file_{i}.csv"), b"a\n")
    shelf.verify("20,000 tables", form="text", healthy=[0, 1])


def many_exports(shelf):
    """Every file an export of its own."""
    prof = shelf.base("msprof")[0]
    output = os.path.join(prof, "mindstudio_profiler_output")
    for i in range(20000):
        write(os.path.join(output, f"op_summary_2025{i:010}.csv"), b"a\n")
    shelf.verify("20,000 exports", form="msprof", healthy=[1])


def many_slices(shelf):
    prof = shelf.base("msprof")[0]
    output = os.path.join(prof, "mindstudio_profiler_output")
    for number in (0, 1, 99, 2147483647, 2147483648, 99999999999999999999, "-1", "x", ""):
        write(os.path.join(output, f"op_summary_slice_{number}_20250601080000.csv"), b"a\n")
        write(os.path.join(output, f"msprof_slice_{number}_20250601080000.json"), b"[]")
    shelf.verify("odd slices", form="msprof", healthy=[1])


def many_loose(shelf):
    """Loose deliverables in one directory, each of another role."""
    os.makedirs(shelf.tree)
    for i in range(3000):
        write(os.path.join(shelf.tree, f"kernel_details_{i}.csv"), b"Name\n")
        write(os.path.join(shelf.tree, f"profiler_info_{i}.json"), b"{}")
        write(os.path.join(shelf.tree, f"ascend_pytorch_profiler_{i}.db"), b"SQLite format 3\0")
    shelf.verify("9,000 loose files")


def deep(shelf):
    ranks = shelf.base("text")
    place = os.path.join(shelf.tree, *["d"] * 200)
    os.makedirs(place)
    shutil.copytree(ranks[0], os.path.join(place, "deep_ascend_pt"))
    shelf.verify("200 levels", form="text", healthy=[0, 1])


def long_path(shelf):
    """As long as the system allows, and longer ones below."""
    rank = shelf.base("text")[0]
    top = os.open(shelf.tree, os.O_RDONLY)
    here, path = top, shelf.tree
    for length in [200] * 40:
        room = 4000 - len(path) - 1
        if room <= 0:
            break
        name = "n" * min(length, room)
        os.mkdir(name, dir_fd=here)
        here = os.open(name, os.O_RDONLY, dir_fd=here)
        path = os.path.join(path, name)
    os.mkdir("x_ascend_pt", dir_fd=here)
    inner = os.open("x_ascend_pt", os.O_RDONLY, dir_fd=here)
    for name in ("profiler_info_7.json", "kernel_details.csv", "n" * 200):
        out = os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=inner)
        os.write(out, b"{}")
        os.close(out)
    os.mkdir("ASCEND_PROFILER_OUTPUT", dir_fd=inner)
    output = os.open("ASCEND_PROFILER_OUTPUT", os.O_RDONLY, dir_fd=inner)
    for name in ("kernel_details.csv", "m" * 255, "trace_view.json"):
        with open(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=output), "wb") as out:
            out.write(read(os.path.join(rank, "ASCEND_PROFILER_OUTPUT", "kernel_details.csv")))
    for path_given in (path, path + "/x_ascend_pt", path + "/x_ascend_pt/kernel_details.csv",
                       path + "/" + "n" * 94, "n" * 5000, "n/" * 20000):
        shelf.verify(f"a path of {len(path_given)} characters", path=path_given)
    shelf.verify("a long path below", form="text", healthy=[0, 1])


def unreadable(shelf):
    as_nobody = True
    for victim in ("", "ASCEND_PROFILER_OUTPUT", "profiler_info_0.json", "logs",
                   "ASCEND_PROFILER_OUTPUT/kernel_details.csv",
                   "ASCEND_PROFILER_OUTPUT/trace_view.json",
                   "ASCEND_PROFILER_OUTPUT/communication.json"):
        for mode in (0o000, 0o444, 0o111):
            rank = shelf.base("text")[0]
            for folder, _, files in os.walk(shelf.tree):
                os.chmod(folder, 0o755)
                for name in files:
                    os.chmod(os.path.join(folder, name), 0o644)
            path = os.path.join(rank, victim)
            if os.path.isfile(path) and mode == 0o444:
                continue
            os.chmod(path, mode)
            shelf.verify(f"{victim or 'the rank'} has mode {mode:o}", form="text", healthy=[1],
                         as_nobody=as_nobody, told=True)
            os.chmod(path, 0o755)
    os.chmod(shelf.tree, 0)
    shelf.verify("the tree is closed", as_nobody=as_nobody, statuses=((4,), (4,)))
    os.chmod(shelf.tree, 0o755)
    shelf.base("db")
    for folder, _, files in os.walk(shelf.tree):
        os.chmod(folder, 0o555)
        for name in files:
            os.chmod(os.path.join(folder, name), 0o000 if "_0.db" in name else 0o444)
    shelf.verify("a closed database", form="db", healthy=[1], as_nobody=as_nobody, told=True)
    for folder, _, _ in os.walk(shelf.tree):
        os.chmod(folder, 0o755)


def inputs(shelf):
    """PATH itself is no capture."""
    os.makedirs(shelf.tree)
    os.mkfifo(os.path.join(shelf.tree, "fifo"))
    os.symlink("nowhere", os.path.join(shelf.tree, "dangling"))
    write(os.path.join(shelf.tree, "empty"), b"")
    write(os.path.join(shelf.tree, "noise"), bytes(range(256)) * 100)
    os.truncate(os.path.join(shelf.tree, "empty"), 0)
    write(os.path.join(shelf.tree, "hole"), b"")
    os.truncate(os.path.join(shelf.tree, "hole"), 10 << 30)
    os.makedirs(os.path.join(shelf.tree, "nothing"))
    here = shelf.tree + "/"
    for path, allowed in (("fifo", (4,)), ("dangling", (2,)), ("missing", (2,)), ("empty", ANY),
                          ("noise", ANY), ("hole", ANY), ("nothing", (1, 2, 3)),
                          ("empty/below", (2, 4)), ("/dev/null", (4,)), ("/dev/zero", (4,)),
                          ("", (2, 4)), ("\x1b[31m", (2,)), ("a\nb", (2,)), ("%s%n", (2,))):
        given = path if path == "" else os.path.join(here, path)
        shelf.verify(f"PATH is {path!r}", path=given, statuses=(allowed, allowed))


# ---- archives ----

def add(tar, name, content=b"", kind=tarfile.REGTYPE, link="", size=None):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    member.size = len(content) if size is None else size
    tar.addfile(member, io.BytesIO(content) if size is None else None)


def tar_of(shelf, path, mode="w:gz", extra=None):
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as tar:
        if extra:
            extra(tar)
        for form in ("text",):
            tar.add(shelf.lab.bases[form], "prof")


def slip(tar):
    for name in ("../evil", "/tmp/npuprof-evil", "prof/../../evil", "..", ".", "", "a\nb",
                 "\x1b[31mred", "n" * 300, "/" * 50 + "x", "./././x", "a/../b"):
        try:
            add(tar, name, b"evil")
        except (ValueError, tarfile.TarError):
            pass
    add(tar, "link", kind=tarfile.SYMTYPE, link="/")
    add(tar, "link/npuprof-evil", b"evil")
    add(tar, "up", kind=tarfile.SYMTYPE, link="..")
    add(tar, "up/npuprof-evil", b"evil")
    add(tar, "hard", kind=tarfile.LNKTYPE, link="/etc/passwd")
    add(tar, "hard2", kind=tarfile.LNKTYPE, link="../../evil")
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
        add(tar, f"prof/special{kind!r}", kind=kind)


def archives(shelf):
    archive = os.path.join(shelf.top, "a.tar.gz")
    healthy = {"form": "text", "healthy": [0, 1]}

    def verify(note, **options):
        shelf.verify(note, path=archive, tree=archive, **options)
    tar_of(shelf, archive)
    verify("whole", **healthy)
    whole = read(archive)
    for position in sample(shelf.lab, range(0, len(whole), len(whole) // 60 + 1), 20):
        write(archive, whole[:position])
        verify(f"cut at {position}")
    for i in range(0, len(whole), len(whole) // (200 if shelf.lab.full else 15)):
        spoiled = bytearray(whole)
        spoiled[i] ^= 0x10
        write(archive, spoiled)
        verify(f"a flipped bit at {i}")
    tar_of(shelf, archive, extra=slip)
    verify("members that would leave it", **healthy)
    for path in ("/tmp/npuprof-evil", "/npuprof-evil", shelf.top + "/evil",
                 shelf.top + "/npuprof-evil", shelf.temp + "/evil"):
        if os.path.lexists(path):
            shelf.fail(f"the archive wrote {path}")
    inner = whole
    tar_of(shelf, archive, extra=lambda tar: add(tar, "prof/inner.tar.gz", inner))
    verify("an archive in it", **healthy)
    for label, content in (("a tar of nothing", bytes(10240)), ("a gzip of noise",
                           gzip.compress(bytes(range(256)) * 1000)),
                           ("a zip that is none", b"PK\3\4" + bytes(1000)),
                           ("a zstd that is none", b"\x28\xb5\x2f\xfd" + bytes(1000)),
                           ("a 7z", b"7z\xbc\xaf\x27\x1c" + bytes(1000)),
                           ("gzip on gzip", gzip.compress(gzip.compress(whole)))):
        write(archive, content)
        verify(label)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("../evil", b"evil")
        for folder, _, files in os.walk(shelf.lab.bases["text"]):
            for name in files:
                path = os.path.join(folder, name)
                out.write(path, os.path.relpath(path, shelf.lab.bases["text"]))
    verify("a zip", **healthy)
    whole = read(archive)
    for position in sample(shelf.lab, range(0, len(whole), len(whole) // 60 + 1), 8):
        write(archive, whole[:position])
        verify(f"a zip cut at {position}")


def sparse_member(size):
    """A tar with a GNU sparse member: one block of data, `size` bytes when unpacked."""
    name = b"prof/ASCEND_PROFILER_OUTPUT/kernel_details.csv"
    header = bytearray(512)

    def put(at, text):
        header[at:at + len(text)] = text
    put(0, name)
    put(100, b"0000644\0" + b"0000000\0" * 2 + b"00000001000\0" + b"00000000000\0")
    put(156, b"S")
    put(257, b"ustar  \0")
    put(386, b"00000000000\0" + b"00000001000\0")
    put(483, b"%011o\0" % size if size < 8 ** 11 else b"\x80" + size.to_bytes(11, "big"))
    put(148, b" " * 8)
    put(148, b"%06o\0 " % sum(header))
    return bytes(header) + b"x" * 512 + bytes(1024)


def bombs(shelf):
    archive = os.path.join(shelf.top, "bomb.tar")

    def verify(note):
        shelf.verify(note, path=archive, tree=archive)
    for size in (20 << 30, 1 << 42, 1 << 62):
        write(archive, sparse_member(size))
        verify(f"a sparse member of {size >> 30} GB")
    with tarfile.open(archive, "w") as tar:
        add(tar, "prof/huge.csv", size=1 << 40)
    verify("a member of 1 TB that isn't there")
    with gzip.open(archive, "wb", 1) as out:  # 3 GB of zeros in one member
        member = tarfile.TarInfo("x_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv")
        member.size = 3 << 30
        out.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(3 << 10):
            out.write(bytes(1 << 20))
    verify("3 GB of zeros in 14 MB")
    with tarfile.open(archive, "w:gz") as tar:
        for i in range(5000):
            add(tar, f"d{i}/f{i}")
    verify("5,000 empty files, each in a directory")
    with tarfile.open(archive, "w:gz") as tar:
        add(tar, "/".join(["d"] * 2000) + "/kernel_details.csv", b"Name\n")
    verify("a file 2,000 levels down")


def cases(lab):
    assert lab
    yield "trees: odd names", names
    yield "trees: odd texts inside", nasty_content
    yield "trees: odd times", odd_times
    yield "trees: circles", cycles
    yield "trees: 20,000 directories", many_directories
    yield "trees: many captures", many_captures
    yield "trees: many files", many_files
    yield "trees: many exports", many_exports
    yield "trees: odd slices", many_slices
    yield "trees: many loose files", many_loose
    yield "trees: 200 levels", deep
    yield "trees: long paths", long_path
    yield "trees: unreadable", unreadable
    yield "trees: PATH is something else", inputs
    yield "archives: damaged and unsafe", archives
    yield "archives: bombs", bombs
