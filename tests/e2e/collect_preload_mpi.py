#!/usr/bin/env python3
"""The recorder's ring, stages and look-ups in front of a real library of collectives: Open MPI,
with 2 and 4 processes. The program checks its own results."""
import os
import shutil
import subprocess
import sys

from collect_lib import Skip, Suite
from preload_lib import comm_dir, library, name_hash, read_logs

ROUNDS = 60


def mpirun(number, words, env):
    """On loopback only, and as root, as the tests of `cluster` do."""
    if not shutil.which("mpirun"):
        raise Skip("no mpirun (Debian: openmpi-bin)")
    command = ["mpirun", "-n", str(number), "--oversubscribe", "--mca", "btl", "self,vader",
               "--mca", "plm", "isolated", "--mca", "mpi_yield_when_idle", "1"]
    for name in env:
        command += ["-x", name]
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           **env}
    preload = env.pop("LD_PRELOAD", None)  # for the program, not for mpirun
    if preload:
        at = command.index("LD_PRELOAD")
        command[at] = f"LD_PRELOAD={preload}"
    done = subprocess.run(command + words, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def built(name):
    path = os.path.join(os.path.dirname(library()), "tests", "fakes", "mpi", name)
    if not os.path.exists(path):
        raise Skip("built without Open MPI (Debian: libopenmpi-dev)")
    return path


def recorded(tmp, number):
    program, interpose = built("mpi_program"), built("libnp_interpose_mpi.so")
    comm = comm_dir(tmp)
    mpirun(number, [program, str(ROUNDS)], {"LD_PRELOAD": interpose, "NPUPROF_COMM": comm})
    logs = read_logs(comm)
    assert len(logs) == number and len({log.pid for log in logs}) == number
    assert sorted(log.records[0].rank for log in logs) == list(range(number))
    for log in logs:
        assert log.closed == 1 and log.lost == 0
        want = []
        for count in range(1, ROUNDS + 1):
            want += [(1, count, 8 * count), (2, count, 8 * count), (3, 1, 4),
                     (5, count * number, 4 * count * number), (13, 0, 0)]
        mine = [record for record in log.records if record.comm_name == "tensor parallel"]
        assert [(r.op, r.count, r.tensor_bytes) for r in mine] == want
        assert [r.comm_seq for r in mine] == list(range(len(want)))
        for record in mine:
            assert record.world == number and record.comm_hash == name_hash("tensor parallel")
            assert record.rc == 0 and record.call_ns > 0
        starts = [record.start_ns for record in log.records]
        assert starts == sorted(starts)


def off(tmp):
    program, interpose = built("mpi_program"), built("libnp_interpose_mpi.so")
    mpirun(2, [program, "20"], {"LD_PRELOAD": interpose})
    comm = comm_dir(tmp)
    mpirun(2, [program, "20"], {"LD_PRELOAD": interpose, "NPUPROF_COMM": comm,
                                "NPUPROF_INJECT_OFF": "1"})
    assert os.listdir(comm) == []


def main():
    suite = Suite(__doc__)
    suite.run("two_processes", lambda tmp: recorded(tmp, 2))
    suite.run("four_processes", lambda tmp: recorded(tmp, 4))
    suite.run("switched_off", off)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
