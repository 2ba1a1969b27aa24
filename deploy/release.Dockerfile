# The image of a release: the program that the release has built. See Dockerfile.
FROM golang:1.26 AS certificates
FROM scratch
ARG TARGETPLATFORM
COPY --from=certificates /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY $TARGETPLATFORM/headgate /bin/headgate
COPY $TARGETPLATFORM/headgate /bin/ratelimit
USER 65532:65532
# Under the name /bin/ratelimit, it also reads the environment variables of envoyproxy/ratelimit.
ENTRYPOINT ["/bin/headgate"]
CMD ["serve", "--http", ":8080", "--grpc", ":8081", "--debug", "127.0.0.1:6070"]
EXPOSE 8080 8081
