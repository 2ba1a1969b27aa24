// Package config reads the rules file.
//
// Everything in a file is checked, and all faults are reported together, each as
// "file:line: field: what is wrong; want ...". A file with a domain at its top is a file of
// envoyproxy/ratelimit, and is read as it is. Several files add up.
package config

import (
	_ "embed"
	"errors"
	"net/netip"
	"os"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Config is what the files say, checked. It does not change after it was read.
type Config struct {
	Store          string         // the URL of the store; empty: memory:
	KeySecret      string         // of hashed keys; empty: Redis holds the keys
	WhenStoreFails Policy         // empty: not given
	StoreTimeout   time.Duration  // after which WhenStoreFails decides; 0: not given
	Instances      int            // that share the store; 0: not given
	Trust          []netip.Prefix // proxies whose X-Forwarded-For counts
	Listen         Listen
	TLS            certs.Files // the files are reloaded when they change
	API            API
	Envoy          Envoy
	Rules          []rules.Rule
	CORS           []string    // origins of pages that may read denials; "*": all
	Reply          rules.Reply // of rules that do not have their own
	Overrides      []rules.Override
	Domains        []*envoy.Domain // in the dialect of envoyproxy/ratelimit

	Warnings []string // what is accepted and likely wrong, with file and line
	Places   []Place  // of Rules
	Hash     string   // of the files' contents
	Files    []string

	domains *envoy.Config // of Domains
}

// Policy says what is answered while the store fails.
type Policy string

// The policies: deny all, allow all, or decide by this instance's share of each limit.
const (
	Closed Policy = "closed"
	Open   Policy = "open"
	Share  Policy = "share"
)

// Listen holds the addresses of the listeners. One that is "off" is not opened, and an empty one is
// the server's default.
type Listen struct {
	HTTP    string
	GRPC    string
	Debug   string
	Metrics string
}

// API restricts the HTTP interface.
type API struct {
	Tokens            []string // bearer tokens; none: no token is asked for
	AllowInlineLimits bool
}

// Envoy are the settings of Envoy's rate limit protocol.
type Envoy struct {
	DynamicMetadata  bool          // answers have the request and the metadata of what passed
	HeaderFields     bool          // answers have RateLimit-Limit, -Remaining, -Reset, Retry-After
	AllOrNone        bool          // a request is charged to all its descriptors, or to none
	LocalCacheBytes  int           // of memory for denials until their window ends
	MaxConnectionAge time.Duration // give or take a tenth; 0: not given
}

// Options say how files are found and read. The zero Options are for a plain list of paths.
type Options struct {
	Runtime      *Runtime                    // the directories of envoyproxy/ratelimit; nil: none
	MergeDomains bool                        // a domain may be in several files
	Store        string                      // of a flag, which the file's does not replace
	NoProxy      bool                        // no request is passed on: statuses stay unknown
	Env          func(string) (string, bool) // for ${VAR}; nil: os.LookupEnv
	Now          time.Time                   // for what has expired; zero: the current time
}

// Load reads the files at paths, each a file or a directory, and those of o.Runtime. The error
// joins all faults, one a line. Nobody reads the Config of a Load that failed.
func Load(paths []string, o Options) (*Config, error) {
	files, err := readAll(paths, o)
	if err != nil {
		return nil, err
	}
	return parse(files, o)
}

// Parse reads one file whose text is given; errors call it name.
func Parse(name string, text []byte, o Options) (*Config, error) {
	return parse([]file{{name, text}}, o)
}

func parse(files []file, o Options) (*Config, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	l := loader{
		env: o.Env, now: o.Now, mergeDomains: o.MergeDomains, noProxy: o.NoProxy,
		store:  o.Store,
		config: &Config{Hash: hash(files)},
		set:    map[string]Place{},
		named:  map[string]Place{},
		limits: map[string]Place{},
	}
	for _, f := range files {
		l.config.Files = append(l.config.Files, f.name)
		l.file(f)
	}
	l.crossCheck()
	if len(l.faults) > 0 {
		return nil, errors.Join(l.faults...)
	}
	l.warn()
	for _, o := range l.rules {
		l.config.Places = append(l.config.Places, o.Place)
	}
	return l.config, nil
}

//go:embed example.yaml
var example []byte

// Example returns the Config of a server that was given no file: the rule example, in memory.
func Example() (*Config, error) { return Parse("built-in example", example, Options{}) }

// Schema is the JSON Schema of the file, for editors. It accepts what [Load] accepts, and a little
// more: numbers that do not fit, and what only all files together show.
//
//go:embed schema.json
var Schema []byte
