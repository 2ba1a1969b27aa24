package environment

import "time"

// XDS says from which server the configuration comes.
type XDS struct {
	Server     string // host:port
	NodeID     string
	Metadata   map[string]string // of the node
	Headers    map[string]string // of each stream
	Retry      time.Duration     // between attempts to connect
	MaxMessage int               // bytes; 0: as gRPC has it

	BackoffInitial time.Duration
	BackoffMax     time.Duration
	BackoffRandom  float64 // the part of an interval that is random
	Jitter         bool

	TLS       bool
	Cert, Key string // files
	ServerCA  string
	ServerSAN string
}

func (v *variables) xds() *XDS {
	return &XDS{
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
