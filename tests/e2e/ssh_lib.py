"""Hosts on loopback for the tests of everything remote: real sshd's, each on a port of its own.

    cluster = Cluster(tmp)                    # keys, a client configuration, known_hosts
    host = cluster.host("node1")              # an sshd; in the configuration as "node1"
    suite.call("devices", "node1", "--ssh-config", cluster.config)
    host.kill_sessions(); host.stop(); cluster.close()

A host has a home of its own (host.home) and, first in its PATH, a directory for fake programs
(host.bin). Everything lives below tmp, every process is ended by its id. Wants sshd and, for its
privilege separation, root: Skip without them.
"""
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

from collect_lib import Skip

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
PRIVSEP = "/run/sshd"


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def keygen(path, kind="ed25519"):
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "test", "-f", path], check=True)
    with open(path + ".pub", encoding="utf-8") as file:
        return file.read().strip()


def children(pid):
    """Process ids below `pid`, the deepest last."""
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            for child in file.read().split():
                found += [int(child), *children(int(child))]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=20, what="the condition"):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


class Host:
    """One sshd. `options` are further lines of its configuration."""

    def __init__(self, cluster, name, options="", known=True):
        self.cluster, self.name = cluster, name
        self.dir = os.path.join(cluster.dir, name)
        self.home, self.bin = os.path.join(self.dir, "home"), os.path.join(self.dir, "bin")
        os.makedirs(self.home)
        os.makedirs(self.bin)
        self.port = free_port()
        self.key = keygen(os.path.join(self.dir, "host_key"))
        self.log = os.path.join(self.dir, "sshd.log")
        write(os.path.join(self.dir, "authorized_keys"), cluster.user_key + "\n")
        self.server = None
        self.sshd_config = write(os.path.join(self.dir, "sshd_config"), "\n".join([
            f"Port {self.port}", "ListenAddress 127.0.0.1",
            f"HostKey {self.dir}/host_key", f"PidFile {self.dir}/sshd.pid",
            f"AuthorizedKeysFile {self.dir}/authorized_keys",
            "StrictModes no", "UsePAM no", "PasswordAuthentication no",
            "KbdInteractiveAuthentication no", "PermitRootLogin yes", "LogLevel VERBOSE",
            "PrintMotd no", "Subsystem sftp internal-sftp", "MaxSessions 64",
            f'SetEnv HOME={self.home} PATH={self.bin}:/usr/local/bin:/usr/bin:/bin '
            f'NPUPROF_TEST_HOST={name}', options, ""]))
        cluster.add(self, known)
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.server = subprocess.Popen([SSHD, "-D", "-e", "-f", self.sshd_config],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.listens, what=f"sshd of {self.name} listens")

    def listens(self):
        if self.server.poll() is not None:
            raise AssertionError(f"sshd of {self.name} ended:\n{self.read_log()}")
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def read_log(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def logins(self):
        """How many connections have logged in so far."""
        return self.read_log().count("Accepted publickey")

    def sessions(self):
        return children(self.server.pid)

    def kill_sessions(self):
        """Cut every connection: the sshd's of the connections die, then what they run, which so
        cannot tell its end any more."""
        def is_sshd(pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    return file.read().startswith("sshd")
            except (FileNotFoundError, ProcessLookupError):
                return False

        for pid in sorted(self.sessions(), key=is_sshd, reverse=True):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def program(self, name, text):
        """A script first in PATH of the host."""
        path = write(os.path.join(self.bin, name), text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def stop(self):
        if self.server and self.server.poll() is None:
            self.kill_sessions()
            self.server.terminate()
            self.server.wait(10)
        self.server = None


class Cluster:
    """Hosts that share a user's key, a client configuration and a known_hosts."""

    def __init__(self, tmp):
        if not SSHD or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
            raise Skip("no sshd or ssh (Debian: openssh-server openssh-client)")
        if os.geteuid() != 0:
            raise Skip("sshd for tests wants root")
        os.makedirs(PRIVSEP, mode=0o755, exist_ok=True)
        self.dir = os.path.join(tmp, "cluster")
        os.makedirs(self.dir, mode=0o700)
        self.identity = os.path.join(self.dir, "user_key")
        self.user_key = keygen(self.identity)
        self.known_hosts = write(os.path.join(self.dir, "known_hosts"), "")
        self.config = write(os.path.join(self.dir, "ssh_config"), "")
        self.runtime = os.path.join(tmp, "run")  # where npuprof makes its sockets
        os.makedirs(self.runtime, mode=0o700)
        self.hosts = []

    @property
    def env(self):
        return {"XDG_RUNTIME_DIR": self.runtime, "SSH_AUTH_SOCK": ""}

    def host(self, name, options="", known=True):
        return Host(self, name, options, known)

    def add(self, host, known):
        self.hosts.append(host)
        if known:
            self.know(host, host.key)
        self.entry(host.name, host.port)

    def entry(self, name, port, *lines):
        """A Host block of the client's configuration."""
        with open(self.config, "a", encoding="utf-8") as file:
            file.write("\n  ".join([
                f"Host {name}", "HostName 127.0.0.1", f"Port {port}", "User root",
                f"IdentityFile {self.identity}", "IdentitiesOnly yes",
                f"UserKnownHostsFile {self.known_hosts}", "GlobalKnownHostsFile /dev/null",
                *lines]) + "\n")

    def know(self, host, key):
        with open(self.known_hosts, "a", encoding="utf-8") as file:
            file.write(f"[127.0.0.1]:{host.port} {' '.join(key.split()[:2])}\n")

    def forget(self):
        write(self.known_hosts, "")

    def sockets(self):
        """What is left of the private directories for ssh's sockets."""
        return [os.path.join(place, name) for place, _, names in os.walk(self.runtime)
                for name in names] + os.listdir(self.runtime)

    def masters(self):
        """Processes of ssh which keep a connection for sockets of this cluster."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as file:
                        if self.runtime.encode() in file.read() and is_alive(int(entry)):
                            found.append(int(entry))
                except (FileNotFoundError, ProcessLookupError):
                    pass
        return [pid for pid in found if pid != os.getpid()]

    def close(self):
        for host in self.hosts:
            host.stop()
        for pid in self.masters():
            os.kill(pid, signal.SIGTERM)


class Throttle:
    """A port that passes bytes on to another one: slowly, and it can be cut or frozen.

    bytes_per_s 0: as they come. cut() closes all connections; `frozen` holds all bytes back.
    """

    def __init__(self, port, bytes_per_s=0):
        self.target, self.bytes_per_s = port, bytes_per_s
        self.frozen = False
        self.passed = 0
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self.connections += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while True:
                data = source.recv(16384)
                while self.frozen:
                    time.sleep(0.02)
                if not data:
                    break
                if self.bytes_per_s:
                    time.sleep(len(data) / self.bytes_per_s)
                sink.sendall(data)
                self.passed += len(data)
        except OSError:
            pass
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for sock in self.connections:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections = []

    def close(self):
        self.frozen = False
        self.listener.close()
        self.cut()
