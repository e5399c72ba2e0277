#!/usr/bin/env python3
"""Checks Dockerfile and Dockerfile.cuda without Docker.

    tests/packaging/dockerfile_check.py [--hadolint build/checkers/bin/hadolint]

Every instruction is one of Docker's, every COPY takes files that are in the tree and not ignored, every script that RUN
starts was copied before, every package is one of scripts/setup or of the list below, the last stage does not run as
root, and options of cmake exist. With hadolint (scripts/checkers), its findings too; without it this is said.
"""

import argparse
import fnmatch
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTRUCTIONS = {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "LABEL", "RUN", "SHELL", "USER",
                "VOLUME", "WORKDIR"}
OTHER_PACKAGES = {"python3-pip"}  # for scripts/cudnn-headers
PACKAGES_OF = {"cpack": {"dpkg-dev", "file"}}  # what a command cannot do without, and minimal images lack


def instructions_of(text):
    """(name, arguments) of each, with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, arguments = line.strip().partition(" ")
            yield name, " ".join(arguments.split())


def ignored(path):
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    parts = Path(path).parts
    return any(fnmatch.fnmatch("/".join(parts[:n]), pattern) for n in range(1, len(parts) + 1) for pattern in patterns)


def setup_packages():
    text = (ROOT / "scripts" / "setup").read_text()
    return set(text[text.index("packages=(") + len("packages=("):text.index("\n)")].split())


def packages_of(command):
    for part in re.split(r"&&|;", command):
        words = shlex.split(part)
        if "apt-get" in words and "install" in words:
            yield from (w for w in words[words.index("install") + 1:]
                        if not w.startswith("-") and w not in ("/package/*.deb", "${extra_packages}"))


def faults_of_stage(instructions):
    copied = []
    for name, arguments in instructions:
        if name not in INSTRUCTIONS:
            yield f"{name} is not an instruction"
        if name == "COPY":
            *sources, _ = arguments.split()
            for source in sources:
                if not (ROOT / source).exists() or (source != "." and ignored(source)):
                    yield f"COPY {source}: not in the tree, or left out by .dockerignore"
            copied += sources
        if name in ("CMD", "ENTRYPOINT") and not isinstance(json.loads(arguments), list):
            yield f"{name}: expected a JSON list"
        if name == "RUN":
            for script in re.findall(r"\bscripts/[\w-]+", arguments):
                if script not in copied and "." not in copied:
                    yield f"RUN {script} stands before it is copied"
            for package in packages_of(arguments):
                if package not in setup_packages() | OTHER_PACKAGES:
                    yield f"{package} is neither a package of scripts/setup nor of this check's list"
            for command, needed in PACKAGES_OF.items():
                if re.search(rf"\b{command}\b", arguments) and not needed <= setup_packages():
                    yield f"{command} needs {', '.join(sorted(needed - setup_packages()))}, which scripts/setup does not install"
            presets = {p["name"] for p in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
            for preset in re.findall(r"--preset (\S+)", arguments):
                if preset not in presets:
                    yield f"--preset {preset} is not in CMakePresets.json"
            for option in re.findall(r"-D(SEXTANT_\w+)=", arguments):
                if f"option({option} " not in (ROOT / "CMakeLists.txt").read_text():
                    yield f"{option} is not an option of CMakeLists.txt"


def faults_of(text):
    stages, before = [], []
    for name, arguments in instructions_of(text):
        if name == "FROM":
            stages.append([])
        (stages[-1] if stages else before).append((name, arguments))
    if len(stages) < 2:
        yield "expected a stage that builds and one that runs"
    for stage in stages:
        yield from faults_of_stage(stage)
    users = [arguments for name, arguments in stages[-1] if name == "USER"]
    if not users or users[-1] in ("root", "0"):
        yield "the last stage runs as root"
    names = {arguments.split(" AS ")[1] for name, arguments in sum(stages, []) if name == "FROM" and " AS " in arguments}
    for stage in re.findall(r"from=(\w+)", text):
        if stage not in names:
            yield f"from={stage}: no stage has that name"


def checks_itself(text):
    """Each of these changes must be found."""
    return all(list(faults_of(text.replace(old, new))) for old, new in
               [("COPY scripts/setup", "COPY scripts/missing"), ("openmpi-bin", "openmpi-binaries"),
                ("USER 1000", "USER root"), ("from=build", "from=bild"), ("WORKDIR", "WORKDIRS"),
                ("SEXTANT_TESTS", "SEXTANT_TEST"), ("COPY scripts/setup", "COPY .git")])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hadolint", type=Path, default=ROOT / "build" / "checkers" / "bin" / "hadolint")
    arguments = parser.parse_args()
    faults = []
    for name in ("Dockerfile", "Dockerfile.cuda"):
        text = (ROOT / name).read_text()
        faults += [f"{name}: {fault}" for fault in faults_of(text)]
        if not checks_itself(text):
            faults.append(f"{name}: this check does not find a fault that was planted")
        if arguments.hadolint.exists():
            outcome = subprocess.run([arguments.hadolint, ROOT / name], capture_output=True, text=True)
            faults += outcome.stdout.splitlines() + outcome.stderr.splitlines()
    if not arguments.hadolint.exists():
        print("hadolint is left out: scripts/checkers installs it")
    print("\n".join(faults) or "no faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
