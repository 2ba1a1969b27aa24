package serve

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
)

// The defaults of Options.
const (
	DefaultHTTP        = "127.0.0.1:8080"
	DefaultGRPC        = "127.0.0.1:8081"
	DefaultDebug       = "127.0.0.1:6070"
	DefaultGrace       = 20 * time.Second
	DefaultConnections = 10_000
)

// Off is the address of a listener that is not opened.
const Off = "off"

// Options are the settings of Run. What is empty is taken from the files, then from the
// environment of envoyproxy/ratelimit if it counts, then from the defaults above.
type Options struct {
	Files []string // files or directories of rules; none: one example rule
	Store string   // the URL of the store

	// KeySecret, of at least 16 bytes, lets Redis hold hashes instead of keys.
	KeySecret string

	HTTP    string // addresses; Off: not opened
	GRPC    string
	Debug   string
	Metrics string // default: Off, because the HTTP listener also serves metrics
	Proxies []Proxy

	Grace        time.Duration // for what is under way at the end
	DrainDelay   time.Duration // before that, in which the server is not ready, and serves
	Connections  int           // of each listener at a time
	LogDecisions float64       // the fraction of decisions that is logged
	LogDenials   bool          // log each minute the top denied key of each rule
	NoConsole    bool          // do not serve /console/

	// ConsoleKeysOnly lets the console show denied keys, but nothing of their requests.
	ConsoleKeysOnly bool

	Grafana string // the URL of a dashboard, to which the console links; "": none

	Version string // of the program, for metrics

	Log *slog.Logger
	Out io.Writer // for what to try next

	// Environment holds the variables of envoyproxy/ratelimit; nil: they do not count.
	Environment *environment.Settings

	Reload <-chan os.Signal // the files are read again at each receive; nil: never
}

// Proxy says where requests are limited and then passed on to.
type Proxy struct {
	Listen string // an address
	Target string // a URL
}

// complete adds what the file says, and then the defaults.
func (o *Options) complete(listen config.Listen) {
	if e := o.Environment; e != nil {
		o.take(&o.HTTP, "--http", e.HTTP, "HOST", "PORT")
		o.take(&o.GRPC, "--grpc", e.GRPC, "GRPC_HOST", "GRPC_PORT", "GRPC_UDS")
		o.take(&o.Debug, "--debug", e.Debug, "DEBUG_HOST", "DEBUG_PORT")
		o.take(&o.Metrics, "--metrics", cmp.Or(e.Metrics, Off), "PROMETHEUS_ADDR")
	}
	o.HTTP = cmp.Or(o.HTTP, listen.HTTP, DefaultHTTP)
	o.GRPC = cmp.Or(o.GRPC, listen.GRPC, DefaultGRPC)
	o.Debug = cmp.Or(o.Debug, listen.Debug, DefaultDebug)
	o.Metrics = cmp.Or(o.Metrics, listen.Metrics, Off)
}

// take sets an option to what the environment says, unless it was given.
func (o *Options) take(option *string, flag, value string, names ...string) {
	if *option == "" {
		*option = value
		return
	}
	for _, name := range names {
		if o.Environment.IsSet(name) {
			o.Log.Warn(name + " has no effect: " + flag + " overrides it")
		}
	}
}
