"""Two hosts on one machine: network, host name and local disk of their own, joined by a cable that can be pulled. Needs root and iproute2; all
other files are shared, as those of a cluster are."""
import os
import shutil
import signal
import subprocess
from pathlib import Path

from program import CHECKOUT

ADDRESSES = ("10.213.77.1", "10.213.77.2")


def why_not():
    """Why there can be no such hosts here; None where they can be."""
    missing = [name for name in ("ip", "nsenter", "unshare", "mpirun") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    if subprocess.run(["unshare", "-n", "-u", "-m", "true"], capture_output=True).returncode != 0:
        return "this user may not make network and mount namespaces (unshare -n -m)"
    cable = f"sx{os.getpid()}t"
    made = subprocess.run(["ip", "link", "add", cable, "type", "veth", "peer", "name", cable + "p"], capture_output=True)
    subprocess.run(["ip", "link", "del", cable], capture_output=True)
    return None if made.returncode == 0 else f"no veth: {made.stderr.decode().strip()}"


class TwoHosts:
    """with TwoHosts(folder, number) as hosts: hosts.inside(command) runs on the first; mpirun reaches the second through hosts.agent."""

    def __init__(self, folder, number=0):
        self.folder = Path(folder)
        self.cable = f"sx{os.getpid() % 100000}n{number}"
        self.agent = self.folder / "remote-shell"
        self.hostfile = self.folder / "hosts"
        self.disk = self.folder / "local-disk"  # the same path on both, with files of its own on each
        self.keepers = []

    def __enter__(self):
        try:
            self.disk.mkdir()
            for name in ("sextant-a", "sextant-b"):
                keeper = subprocess.Popen(["unshare", "-n", "-u", "-m", "sh", "-c", f"hostname {name} && mount -t tmpfs none {self.disk} && "
                                           "ip link set lo up && echo up && exec sleep 100000"], stdout=subprocess.PIPE, start_new_session=True)
                self.keepers.append(keeper)
                keeper.stdout.readline()
            ends = (self.cable + "a", self.cable + "b")
            subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
            for keeper, end, address in zip(self.keepers, ends, ADDRESSES):
                subprocess.run(["ip", "link", "set", end, "netns", str(keeper.pid)], check=True)
                self.on(keeper, ["ip", "address", "add", f"{address}/24", "dev", end])
                self.on(keeper, ["ip", "link", "set", end, "up"])
            inside = " ".join(self.enter(self.keepers[1]))
            self.agent.write_text(f'#!/bin/sh\nshift\nexec {inside} sh -c "$*"\n')
            self.agent.chmod(0o755)
            self.hostfile.write_text("".join(f"{address} slots=2\n" for address in ADDRESSES))
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for keeper in self.keepers:
            keeper.kill()  # the cable goes with its namespaces
            keeper.wait()

    @staticmethod
    def enter(keeper):
        return ["nsenter", "-t", str(keeper.pid), "-n", "-u", "-m", "--", "env", "-C", str(CHECKOUT)]

    def on(self, keeper, command):
        subprocess.run(self.enter(keeper) + command, check=True)

    def inside(self, command):
        return self.enter(self.keepers[0]) + command

    def launcher_words(self):
        """For mpirun: both hosts, by their addresses, over the cable alone."""
        network = "10.213.77.0/24"
        return ["--hostfile", str(self.hostfile), "--map-by", "node", "--mca", "plm_rsh_agent", str(self.agent), "--mca", "btl", "tcp,self",
                "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network,
                # More processes than processors: those that wait leave theirs to others.
                "--mca", "mpi_yield_when_idle", "1"]

    def cut(self):
        self.on(self.keepers[1], ["ip", "link", "set", self.cable + "b", "down"])

    def join(self):
        self.on(self.keepers[1], ["ip", "link", "set", self.cable + "b", "up"])

    def of_host(self, number, processes):
        """Those of the processes that are on the host."""
        def network_of(pid):
            try:
                return os.readlink(f"/proc/{pid}/ns/net")
            except OSError:
                return ""
        own = network_of(self.keepers[number].pid)
        return [pid for pid in processes if network_of(pid) == own]

    def replace(self, number, processes):
        """As if another machine stood in the host's place: its processes are gone, and so is all on its disk."""
        for what in (signal.SIGSTOP, signal.SIGKILL):
            for pid in processes:
                try:
                    os.kill(pid, what)
                except ProcessLookupError:
                    pass
            if what == signal.SIGSTOP:  # nothing is written to the new disk
                self.on(self.keepers[number], ["sh", "-c", f"rm -rf {self.disk}/*"])

    def is_empty(self, number):
        """Whether the host's disk is."""
        listed = subprocess.run(self.enter(self.keepers[number]) + ["ls", "-A", str(self.disk)], check=True, capture_output=True)
        return not listed.stdout.strip()
