package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/redisstore"
)

// file reads one file: of rules, or with a domain at its top.
func (l *loader) file(f file) {
	root := l.document(f)
	if root == nil {
		return
	}
	r := &reader{l, f.name}
	if isDomain(root) {
		r.domain(root, "")
		return
	}
	if root = l.expanded(f, root); root == nil {
		return
	}
	r.mapping(root, "",
		setting(r, "store", &r.config.Store, r.store),
		setting(r, "key_secret", &r.config.KeySecret, r.keySecret),
		setting(r, "when_store_fails", &r.config.WhenStoreFails, parsed(r, parsePolicy)),
		setting(r, "store_timeout", &r.config.StoreTimeout, r.storeTimeout),
		setting(r, "instances", &r.config.Instances, wholeNumber(r, 1, maxInstances)),
		field{"trust", func(n *yaml.Node, path string) {
			const wide = "each client can choose its address by X-Forwarded-For"
			r.config.Trust = append(r.config.Trust, r.networks(wide)(n, path)...)
		}},
		field{"cors", r.cors},
		setting(r, "header_fields", &r.config.Reply.Hides, r.hides),
		setting(r, "retry_jitter", &r.config.Reply.Jitter, parsed(r, rules.ParsePercent)),
		setting(r, "denial", &r.config.Reply.Denial, r.denial),
		field{"listen", r.listen},
		field{"tls", r.tls},
		field{"api", r.api},
		field{"envoy", r.envoy},
		field{"rules", func(n *yaml.Node, path string) { r.list(n, path, r.rule) }},
		field{"overrides", func(n *yaml.Node, path string) { r.list(n, path, r.override) }},
		field{"domains", func(n *yaml.Node, path string) { r.list(n, path, r.domain) }},
	)
}

// domain reads a document in the dialect of envoyproxy/ratelimit. Its faults have their places.
func (r *reader) domain(n *yaml.Node, _ string) {
	d, faults := envoy.ParseDomain(r.file, n)
	if len(faults) > 0 {
		r.faults = append(r.faults, faults...)
		return
	}
	r.config.Warnings = append(r.config.Warnings, d.Warnings...)
	r.config.Domains = append(r.config.Domains, d)
}

// isDomain reports whether root is a file of envoyproxy/ratelimit.
func isDomain(root *yaml.Node) bool {
	return has(root, "domain") || has(root, "descriptors")
}

func (r *reader) store(n *yaml.Node, path string) string {
	url := r.connection(n, path)
	file, found := strings.CutPrefix(url, storeurl.MemoryFile)
	if url == "" || found && file != "" {
		return url
	}
	opened, err := storeurl.Open(url)
	if err != nil {
		r.faultf(n, path, "%s", strings.TrimPrefix(withoutComponent(err), "store "))
		return ""
	}
	_ = opened.Close() // it has not connected
	return url
}

// keySecret reads the secret of hashes. No message repeats it.
func (r *reader) keySecret(n *yaml.Node, path string) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		r.faultf(n, path, "is not text; want a secret in quotes, or ${NAME}")
		return ""
	}
	text := r.connection(n, path)
	if text != "" && len(text) < redisstore.MinKeySecret {
		r.faultf(n, path, "has %d bytes; want at least %d, such as those of openssl rand -hex 32",
			len(text), redisstore.MinKeySecret)
	}
	return text
}

// maxInstances is the largest number of instances that a file can give.
const maxInstances = 100_000

func parsePolicy(text string) (Policy, error) {
	switch p := Policy(text); p {
	case Closed, Open, Share:
		return p, nil
	}
	return "", fmt.Errorf("%q is not a policy; want closed, open or share", text)
}

func (r *reader) storeTimeout(n *yaml.Node, path string) time.Duration {
	d := r.duration("a timeout", "10ms", "10s", "100ms")(n, path)
	if d > 400*time.Millisecond {
		r.warnAt(r.at(n), path, n.Value+" is longer than the default timeouts of the "+
			"store; want read_timeout and dial_timeout in its URL to be at least as long")
	}
	return d
}

// networks reads networks. It warns that one of all addresses has an effect.
func (r *reader) networks(effect string) func(*yaml.Node, string) []netip.Prefix {
	return func(n *yaml.Node, path string) (networks []netip.Prefix) {
		r.texts(n, path, "text", func(text string, n *yaml.Node, path string) {
			p, err := netip.ParsePrefix(text)
			if at, notPrefix := netip.ParseAddr(text); notPrefix == nil && at.Zone() == "" {
				p, err = at.Prefix(at.BitLen())
			}
			if err != nil || p.Masked() != p {
				r.faultf(n, path, "%q is not a network; want one such as 10.0.0.0/8 or 192.0.2.7",
					text)
				return
			}
			if p.Bits() == 0 && effect != "" {
				r.warnAt(r.at(n), path, text+" contains every address: "+effect)
			}
			networks = append(networks, p)
		})
		return networks
	}
}

// hides reads the header fields that report limits, and returns the others.
func (r *reader) hides(n *yaml.Node, path string) httplimit.Fields {
	shown := httplimit.Fields(0)
	for _, f := range each(r, rules.ParseField)(n, path) {
		shown |= f
	}
	if shown&httplimit.NoFields != 0 && shown != httplimit.NoFields {
		r.faultf(n, path, "has none and other fields; want one of them")
	}
	return httplimit.AllFields &^ shown
}

// denial reads the body of denials.
func (r *reader) denial(n *yaml.Node, path string) *rules.Denial {
	d := &rules.Denial{ContentType: "application/json"}
	before := len(r.faults)
	r.mapping(n, path, into("body", &d.Body, r.text), into("content_type", &d.ContentType, r.text))
	r.require(n, path, "body", `a text such as '{"message": "{detail}"}'`)
	if len(r.faults) > before {
		return nil
	}
	if err := d.Validate(); err != nil {
		r.faultf(n, path, "%v", err)
	}
	return d
}

// cors reads the origins of pages.
func (r *reader) cors(n *yaml.Node, path string) {
	r.texts(n, path, "text", func(text string, n *yaml.Node, path string) {
		u, err := url.Parse(text)
		if text != "*" && (err != nil || u.Host == "" || strings.Contains(text, "*") ||
			text != strings.ToLower(u.Scheme+"://"+u.Host) ||
			u.Scheme+u.Port() == "http80" || u.Scheme+u.Port() == "https443") {
			r.faultf(n, path,
				`%q is not an origin; want one such as https://app.example.com, or "*"`, text)
		}
		r.config.CORS = append(r.config.CORS, text)
	})
}

func (r *reader) listen(n *yaml.Node, path string) {
	to := &r.config.Listen
	r.mapping(n, path,
		setting(r, "http", &to.HTTP, r.address),
		setting(r, "grpc", &to.GRPC, r.address),
		setting(r, "debug", &to.Debug, r.address),
		setting(r, "metrics", &to.Metrics, r.address),
	)
}

func (r *reader) address(n *yaml.Node, path string) string {
	text := r.connection(n, path)
	if text != "" && text != "off" && !isAddress(text) {
		r.faultf(n, path, "%q is not an address; want HOST:PORT, :PORT or off", n.Value)
	}
	return text
}

func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, " /") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func (r *reader) tls(n *yaml.Node, path string) {
	to := &r.config.TLS
	r.mapping(n, path,
		setting(r, "cert", &to.Cert, r.connection),
		setting(r, "key", &to.Key, r.connection),
		setting(r, "client_ca", &to.ClientCA, r.connection),
	)
}

func (r *reader) api(n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode { // which may be a token
		r.faultf(n, path, "is not a mapping; want one with tokens, allow_inline_limits")
		return
	}
	r.mapping(n, path,
		field{"tokens", r.tokens},
		setting(r, "allow_inline_limits", &r.config.API.AllowInlineLimits, r.boolean),
	)
}

func (r *reader) envoy(n *yaml.Node, path string) {
	e := &r.config.Envoy
	r.mapping(n, path,
		setting(r, "dynamic_metadata", &e.DynamicMetadata, r.boolean),
		setting(r, "header_fields", &e.HeaderFields, r.boolean),
		setting(r, "all_or_none", &e.AllOrNone, r.boolean),
		setting(r, "local_cache_bytes", &e.LocalCacheBytes, wholeNumber(r, 1, math.MaxInt32)),
		setting(r, "max_connection_age", &e.MaxConnectionAge,
			r.duration("an age", "1s", "8784h", "30m")),
	)
}

func (r *reader) tokens(n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode { // which may be a secret
		r.faultf(n, path, "is not a list; want a list of tokens")
		return
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		// A list that lost its entries must not open the API.
		r.faultf(n, path, "is empty; want at least one token, or no field to require none")
	}
	r.list(n, path, r.token)
}

// token reads a bearer token. No message repeats it.
func (r *reader) token(n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!str" {
		r.faultf(n, path, "is not text; want a token in quotes, or ${NAME}")
		return
	}
	text := r.connection(n, path)
	if text == "" {
		return
	}
	if strings.Trim(text, tokenBytes) != "" {
		r.faultf(n, path, "is not a valid bearer token; want letters, digits and -._~+/=")
		return
	}
	r.config.API.Tokens = append(r.config.API.Tokens, text)
}

const tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="
