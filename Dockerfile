# syntax=docker/dockerfile:1
# Sextant for the CPU, with Open MPI.
#
#   docker build -t sextant .
#   docker run --rm sextant list models
#   docker run --rm -v "$PWD:/home/sextant/work" -w /home/sextant/work sextant train CONFIG
#
# Needs Docker with BuildKit (23 or newer) and a network that reaches Debian's mirror; compiling takes some minutes. The user in the
# image is number 1000, who must be able to write where runs go.
# For Kubernetes add what starts ranks on other pods: --build-arg extra_packages="kubernetes-client" and launch --without-ssh.

FROM debian:bookworm-slim AS build
WORKDIR /source
COPY scripts/setup scripts/setup
RUN scripts/setup
COPY . .
RUN cmake --preset release -DSEXTANT_TESTS=OFF -DSEXTANT_BENCH=OFF \
    && cmake --build build/release --target sextant
WORKDIR /source/build/release
RUN cpack -B /package

FROM debian:bookworm-slim
ARG extra_packages=""
# The package names the libraries it needs. Versions are those of the Debian release.
# hadolint ignore=DL3008,SC2086
RUN --mount=type=bind,from=build,source=/package,target=/package \
    apt-get update \
    && apt-get install -y --no-install-recommends /package/*.deb openmpi-bin ${extra_packages} \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 sextant
USER 1000
WORKDIR /home/sextant
ENTRYPOINT ["sextant"]
CMD ["--help"]
