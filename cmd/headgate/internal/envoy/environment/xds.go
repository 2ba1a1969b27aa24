package environment

import (
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy/xds"
)

func (v *variables) xds() *xds.Options {
	return &xds.Options{
		Server:         v.text("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000"),
		NodeID:         v.text("CONFIG_GRPC_XDS_NODE_ID", "default"),
		Metadata:       v.pairs("CONFIG_GRPC_XDS_NODE_METADATA", "="),
		Headers:        v.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ":"),
		Retry:          v.duration("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", 3*time.Second),
		MaxMessage:     v.number("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", 0),
		BackoffInitial: v.duration("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", 10*time.Second),
		BackoffMax:     v.duration("XDS_CLIENT_BACKOFF_MAX_INTERVAL", time.Minute),
		BackoffRandom:  v.ratio("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", 0.5),
		Jitter:         v.flag("XDS_CLIENT_BACKOFF_JITTER", true),
		TLS:            v.flag("CONFIG_GRPC_XDS_SERVER_USE_TLS", false),
		Cert:           v.text("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", ""),
		Key:            v.text("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", ""),
		ServerCA:       v.text("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", ""),
		ServerSAN:      v.text("CONFIG_GRPC_XDS_SERVER_TLS_SAN", ""),
	}
}
