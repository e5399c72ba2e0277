#!/usr/bin/env python3
"""Validates what `sextant launch --kubernetes` prints against the schemas of Kubernetes, unknown fields included.

    tests/peers/kubernetes_peer.py --sextant build/release/sextant

Objects of Kubernetes itself are validated as they are. An MPIJob is a type of Kubeflow's MPI operator, for which no
schema can be had from PyPI: its own few fields are checked against the table below (v2beta1), and its pods as those of
a batch/v1 Job. Exit 0: valid; 1: not; 77: kubernetes-validate is not installed (scripts/checkers).
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "tiny-llama.toml"

LAUNCH = ["launch", "--kubernetes", str(CONFIG), "mesh.dp=4", "batch.microbatch=1", "--container", "registry.example/a b:1"]
CHOICES = [  # each left out, or given
    ["--without-ssh", "--namespace", "training"],
    ["--volume", "run-files:/runs"],
    ["--volume", "/mnt/shared files:/runs"],
    ["--ranks-per-node", "2", "--gpus-per-rank", "1", "--memory", "64G", "--time", "1-12"],
    ["--service-account", "trainer", "--pull-policy", "Always", "--node-selector", "example.com/gpu=h100",
     "--node-selector", "disk=1"],
]

# Fields of an MPIJob, v2beta1: the type each must have; a dict where the fields below are fixed too.
REPLICAS = {"replicas": int, "template": dict, "restartPolicy": str}
MPI_JOB = {
    "apiVersion": str, "kind": str,
    "metadata": {"name": str, "namespace": str},
    "spec": {
        "slotsPerWorker": int, "sshAuthMountPath": str, "launcherCreationPolicy": str, "mpiImplementation": str,
        "runPolicy": {"cleanPodPolicy": str, "ttlSecondsAfterFinished": int, "activeDeadlineSeconds": int,
                      "backoffLimit": int, "suspend": bool},
        "mpiReplicaSpecs": {"Launcher": REPLICAS, "Worker": REPLICAS},
    },
}


def misfits(value, fields, place):
    """What of an object does not fit the table of its fields."""
    for key, child in value.items():
        if key not in fields:
            yield f"{place}.{key} is not a field"
        elif isinstance(fields[key], dict):
            yield from misfits(child, fields[key], f"{place}.{key}") if isinstance(child, dict) else [f"{place}.{key}"]
        elif type(child) is not fields[key]:
            yield f"{place}.{key} is {child!r}, expected {fields[key].__name__}"


def job_of(template):
    spec = dict(template["spec"], restartPolicy="Never")  # which the operator sets
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pods"},
            "spec": {"template": {"spec": spec}}}


def faults_of(document, kubernetes_validate):
    def schema_faults(value, place):
        try:
            kubernetes_validate.validate(value, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{place}: {'.'.join(str(p) for p in error.path)}: {error.message}"

    if document["kind"] != "MPIJob":
        yield from schema_faults(document, document["kind"])
        return
    if document["apiVersion"] != "kubeflow.org/v2beta1":
        yield f"MPIJob: apiVersion {document['apiVersion']}"
    yield from misfits(document, MPI_JOB, "MPIJob")
    specs = document["spec"]["mpiReplicaSpecs"]
    for name in ("Launcher", "Worker"):
        yield from schema_faults(job_of(specs[name]["template"]), name)
        spec = specs[name]["template"]["spec"]
        volumes = {volume["name"] for volume in spec.get("volumes", [])}
        for container in spec["containers"]:
            mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
            if mounts != volumes:
                yield f"{name}: mounts {sorted(mounts)} of the volumes {sorted(volumes)}"


def documents_of(sextant, options, yaml):
    text = subprocess.run([sextant, *LAUNCH, *options], check=True, capture_output=True, text=True).stdout
    return list(yaml.safe_load_all(text))


def checks_itself(document, kubernetes_validate):
    """A checker that finds nothing wrong with these would find nothing anywhere."""
    import copy

    spoiled = []
    for spoil in (lambda d: d["spec"].update(slots=1),
                  lambda d: d["spec"].update(slotsPerWorker="8"),
                  lambda d: d["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update(nodeSelectors={}),
                  lambda d: d["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update(nodeSelector={"disk": 1}),
                  lambda d: d["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0].pop("name")):
        other = copy.deepcopy(document)
        spoil(other)
        spoiled.append(bool(list(faults_of(other, kubernetes_validate))))
    return all(spoiled)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    arguments = parser.parse_args()
    try:
        import kubernetes_validate
        import yaml
    except ImportError as error:
        print(f"left out: {error.name} is not installed; scripts/checkers installs it")
        return 77
    count, faults = 0, []
    for given in itertools.product([False, True], repeat=len(CHOICES)):
        options = sum((choice for choice, on in zip(CHOICES, given) if on), [])
        if options.count("--volume") > 1:
            continue
        for document in documents_of(arguments.sextant, options, yaml):
            count += 1
            faults += [f"{' '.join(options)}: {fault}" for fault in faults_of(document, kubernetes_validate)]
    job = documents_of(arguments.sextant, CHOICES[1] + CHOICES[4], yaml)[-1]
    if not checks_itself(job, kubernetes_validate):
        faults.append("the check accepts manifests that were spoiled on purpose")
    print(f"{count} objects against the schemas of Kubernetes {kubernetes_validate.latest_version()}: {len(faults)} faults")
    for fault in faults[:10]:
        print("  " + fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
