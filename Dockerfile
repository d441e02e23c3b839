# agent-ci for machines of one's own: cron, Kubernetes, self-hosted runners.
# docs/how-to/containers.md says how it is run. It needs the binary in dist/:
#
#     make cross && docker build --tag agent-ci .
#
# BASE is any Debian or Ubuntu; a release names one by its digest.
ARG BASE=debian:trixie-slim
FROM ${BASE}

RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      build-essential ca-certificates curl file git jq openssh-client patch pkg-config \
      procps python3 tini unzip xz-utils zip \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log

# A user by number, so that Kubernetes can see that it is not root. What a run
# writes goes to /tmp, the home folder, the state folder and /work; all else may
# be read-only.
RUN groupadd --gid 10001 agent-ci \
 && useradd --uid 10001 --gid 10001 --no-log-init --no-create-home --home-dir /home/agent-ci --shell /bin/bash agent-ci \
 && install --directory --owner=10001 --group=10001 /home/agent-ci /var/lib/agent-ci /work
ENV HOME=/home/agent-ci XDG_STATE_HOME=/var/lib
USER 10001:10001
WORKDIR /work

ARG TARGETARCH
COPY --chmod=0755 dist/agent-ci-linux-${TARGETARCH} /usr/local/bin/agent-ci

ARG BASE
ARG BASE_DIGEST=""
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="agent-ci" \
      org.opencontainers.image.description="Runs a coding agent in CI and turns its change into a pull request" \
      org.opencontainers.image.source="https://github.com/agent-ci/agent-ci" \
      org.opencontainers.image.documentation="https://github.com/agent-ci/agent-ci/blob/main/docs/how-to/containers.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"

# As process 1, tini ends what others leave behind.
ENTRYPOINT ["/usr/bin/tini", "--", "agent-ci"]
CMD ["--help"]
