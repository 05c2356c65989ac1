# An image that holds one static program and nothing else: no shell, no package manager, no user database. It runs as a number
# without rights, and writes nothing but what `cutonce dev` keeps in /var/lib/cutonce and `cutonce demo` puts into /tmp, so that
# its root file system can be read-only.
#
#   docker build -t cutonce .                     builds the program, too
#   docker build --target prebuilt -t cutonce .   takes bin/cutonce as `make build` left it, and needs no registry
#
# `cutonce serve` listens on loopback unless CUTONCE_LISTEN says otherwise, such as 0.0.0.0:8780. It is not set here, because the
# image is also a bridge for agents' hosts (docker run -i --rm cutonce mcp), which must not hold any setting of the service.

FROM scratch AS base
LABEL org.opencontainers.image.title="cutonce" \
      org.opencontainers.image.description="Agents prepare, people approve, and it is applied exactly once" \
      org.opencontainers.image.licenses="Apache-2.0"
# The only folder of the user's own. A new volume that is mounted here becomes the user's, too.
COPY --chown=65532:65532 LICENSE /var/lib/cutonce/LICENSE
EXPOSE 8780 8781
USER 65532:65532
WORKDIR /var/lib/cutonce
# Whether the process runs; readiness is /readyz. A supervisor that restarts what is not ready would do so for a database's outage.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/cutonce", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/cutonce"]
CMD ["serve"]

FROM base AS prebuilt
COPY bin/cutonce /cutonce

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG REVISION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION} -X main.revised=${REVISION}" -o /cutonce ./cmd/cutonce

FROM base
COPY --from=build /cutonce /cutonce
