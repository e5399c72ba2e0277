"""Starts the program under a time limit, ends it with all its processes, and says what a broken promise is."""
import os
import re
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# C0 but tab and line break, DEL, and C1 as UTF-8 writes it: what makes a terminal do something.
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
# Every process of a start inherits it, whatever session or process group a launcher puts it in.
MARK = "SEXTANT_CAMPAIGN_START"


class Broken(Exception):
    """An invariant does not hold."""


@dataclass
class Ended:
    """How a start ended. `code` is negative for a signal, as in subprocess; None where the time limit ended it."""
    command: list
    code: int | None
    out: bytes
    err: bytes
    killed: bool = False

    def text(self):
        return (self.out + self.err).decode(errors="replace")

    def told(self):
        """The command and the end of what it wrote, for a report."""
        tail = (self.out[-600:] + self.err[-1200:]).decode(errors="backslashreplace")
        return f"$ {' '.join(map(str, self.command))}\nexit {self.code}\n{tail}"


def processes_of(mark):
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass  # ended meanwhile, or of another user
    return found


def kill_all(mark):
    """Ends every process of a start; again until none is left, since a launcher may just be starting one."""
    for _ in range(100):
        alive = [pid for pid in processes_of(mark) if not is_zombie(pid)]
        if not alive:
            return
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.001)


def is_zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def start(command, folder, limit=20.0, kill_when=None):
    """Runs `command` to its end. `kill_when()` is polled while it runs; once it is true, every process is killed."""
    mark = uuid.uuid4().hex
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_btl_vader_backing_directory=str(folder), TMPDIR=str(folder), OPENBLAS_NUM_THREADS="1")
    environment[MARK] = mark
    # Files, not pipes: what writes into a pipe that nobody empties waits.
    with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=CHECKOUT,
                                   env=environment, start_new_session=True)
        try:
            killed, code = wait(process, mark, time.monotonic() + limit, kill_when)
        except BaseException:  # asked to end: nothing is left behind
            process.kill()
            kill_all(mark)
            raise
        out.seek(0)
        err.seek(0)
        return Ended(command, code, out.read(), err.read(), killed)


def wait(process, mark, deadline, kill_when):
    if kill_when is None:
        try:
            return False, process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            kill_all(mark)
            process.wait()
            return False, None
    while process.poll() is None:
        late = time.monotonic() > deadline
        if late or kill_when():
            os.kill(process.pid, signal.SIGKILL)  # not yet waited for, so the id is still its own
            kill_all(mark)
            process.wait()
            return not late and process.returncode == -signal.SIGKILL, None if late else process.returncode
        time.sleep(0.0005)
    return False, process.returncode


def hold_to(ended, codes):
    """The promises about every end: a listed exit code, in time, with a message where it failed, nothing raw in it."""
    if ended.code is None:
        raise Broken(f"time-out\n{ended.told()}")
    if ended.code not in codes:
        raise Broken(f"ended with {ended.code}, not one of {sorted(codes)}\n{ended.told()}")
    if ended.code != 0 and not ended.err.strip():
        raise Broken(f"failed without a message on stderr\n{ended.told()}")
    if CONTROL.search(ended.out) or CONTROL.search(ended.err):
        raise Broken(f"raw control characters in the output\n{ended.told()}")
