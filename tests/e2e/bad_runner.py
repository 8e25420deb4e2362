#!/usr/bin/env python3
"""Starts programs for bad_input.py: one JSON line in, one out, until stdin ends.

A process of its own, since Linux counts the memory of the process that started a
program as the program's own peak until it has more. This one stays small.
"""
import json
import os
import resource
import subprocess
import sys
import threading
import time


def run(order):
    extra = {}
    if order["uid"] is not None:
        extra = {"user": order["uid"], "group": order["uid"], "extra_groups": []}

    def limit():
        # a loop is told by its processor time, so that a busy machine does not look like
        # one; what waits for ever is told by the clock
        resource.setrlimit(resource.RLIMIT_CPU, (order["timeout"], order["timeout"]))

    with open(order["out"], "wb") as out, open(order["err"], "wb") as err:
        started = time.monotonic()
        process = subprocess.Popen([os.fsencode(word) for word in order["command"]],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=order["env"], preexec_fn=limit, **extra)
        hung = threading.Event()

        def stop():
            hung.set()
            process.kill()

        timer = threading.Timer(6 * order["timeout"], stop)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        if usage.ru_utime + usage.ru_stime >= order["timeout"]:
            hung.set()
        return {"status": process.returncode, "rss": usage.ru_maxrss * 1024,
                "seconds": time.monotonic() - started, "hung": hung.is_set()}


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
