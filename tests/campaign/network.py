"""Two hosts on one machine: network and host name of their own, joined by a cable that can be pulled. Needs root and iproute2; the file system
is shared, as that of a cluster is."""
import os
import shutil
import subprocess
from pathlib import Path

ADDRESSES = ("10.213.77.1", "10.213.77.2")


def why_not():
    """Why there can be no such hosts here; None where they can be."""
    missing = [name for name in ("ip", "nsenter", "unshare", "mpirun") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    if subprocess.run(["unshare", "-n", "-u", "true"], capture_output=True).returncode != 0:
        return "this user may not make network namespaces (unshare -n)"
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
        self.keepers = []

    def __enter__(self):
        try:
            for name in ("sextant-a", "sextant-b"):
                keeper = subprocess.Popen(["unshare", "-n", "-u", "sh", "-c", f"hostname {name} && ip link set lo up && echo up && exec sleep 100000"],
                                          stdout=subprocess.PIPE, start_new_session=True)
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
        return ["nsenter", "-t", str(keeper.pid), "-n", "-u", "--"]

    def on(self, keeper, command):
        subprocess.run(self.enter(keeper) + command, check=True)

    def inside(self, command):
        return self.enter(self.keepers[0]) + command

    def launcher_words(self):
        """For mpirun: both hosts, by their addresses, over the cable alone."""
        network = "10.213.77.0/24"
        return ["--hostfile", str(self.hostfile), "--map-by", "node", "--mca", "plm_rsh_agent", str(self.agent), "--mca", "btl", "tcp,self",
                "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]

    def cut(self):
        self.on(self.keepers[1], ["ip", "link", "set", self.cable + "b", "down"])

    def join(self):
        self.on(self.keepers[1], ["ip", "link", "set", self.cable + "b", "up"])
