package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/redis/go-redis/v9"
)

const wantURL = "redis://[user:password@]host[:port][/db], rediss:// for TLS, " +
	"redis+cluster://host:port,host:port, redis+sentinel://host:port,host:port/master-name or " +
	"redis+proxy://host:port"

const wantEscaped = "; in a password write %25 for %, %20 for a space, " +
	"%2F for /, %23 for #, %3F for ?, %26 for &"

// These are the timeout of a dial, a read and a write, and how often a dial is tried. With them, a
// call that is alone fails within a second if a single server hangs. With more than one try, the
// context of the caller would end first, so its error would not name a refused connection.
const (
	defaultTimeout = "400ms"
	dialerRetries  = 1
)

// Open makes a store from a URL, with a client of its own that [Store.Close] closes.
// It connects when first used. The forms are
//
//	redis://[user:password@]host[:port][/db]
//	redis+cluster://[user:password@]host:port[,host:port…]
//	redis+sentinel://[user:password@]host:port[,host:port…]/master-name[/db]
//	redis+proxy://[user:password@]host[:port][/db]
//
// and rediss, rediss+cluster, rediss+sentinel and rediss+proxy for TLS. The last form is for a
// proxy that routes commands by key, see [Options].Proxy. Query parameters are those of go-redis,
// such as dial_timeout=1s and pool_size=20; prefix and queue set those of [Options]. By default,
// dial_timeout, read_timeout and write_timeout are 400 ms, and a dial is tried once. A
// timeout of 0 is none.
// Errors are headgate.InvalidErrors and contain no password.
func Open(rawURL string) (*Store, error) {
	s, err := open(rawURL)
	if err != nil && mistaken(rawURL) {
		return nil, malformedURL(rawURL)
	}
	return s, err
}

// mistaken reports whether part of a password may have been parsed as another part of rawURL, which
// must not be shown then: an @ comes after what was parsed as the hosts.
func mistaken(rawURL string) bool {
	_, rest, _ := strings.Cut(rawURL, "://")
	i := strings.IndexAny(rest, "/?#")
	return i >= 0 && strings.Contains(rest[i:], "@")
}

func open(rawURL string) (*Store, error) {
	u, kind, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	o, err := takeOptions(u)
	if err != nil {
		return nil, err
	}
	o.Proxy = kind == "proxy"
	client, err := newClient(u, kind)
	if err != nil {
		return nil, refused(u, err)
	}
	s, err := New(client, o)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}

// parseURL parses a URL with one or more hosts, separated by commas. The first stays the host;
// the others become addr parameters, as in go-redis. The kind is what follows a + in the scheme.
func parseURL(rawURL string) (u *url.URL, kind string, err error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	plain, kind, _ := strings.Cut(strings.ToLower(scheme), "+")
	switch {
	case !ok:
		return nil, "", invalid("store URL", "without a scheme", wantURL)
	case plain != "redis" && plain != "rediss",
		!slices.Contains([]string{"", "cluster", "sentinel", "proxy"}, kind):
		return nil, "", invalid("store URL", "of scheme "+strconv.Quote(scheme), wantURL)
	}
	hosts, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		hosts, tail = rest[:i], rest[i:]
	}
	at := strings.LastIndexByte(hosts, '@') + 1
	first, others, several := strings.Cut(hosts[at:], ",")
	if u, err = url.Parse(plain + "://" + hosts[:at] + first + tail); err != nil {
		return nil, "", malformedURL(rawURL)
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" &&
		(err != nil || port < 1 || port > 65535) {
		return nil, "", invalid("port of the store", strconv.Quote(u.Port()), "1 to 65535")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "", malformedURL(rawURL)
	}
	if several {
		query["addr"] = append(query["addr"], strings.Split(others, ",")...)
	}
	u.RawQuery = query.Encode()
	return u, kind, nil
}

// takeOptions removes the parameters of [Options] from the query of u, and checks its numbers.
func takeOptions(u *url.URL) (o Options, err error) {
	query := u.Query()
	o.Prefix = query.Get("prefix")
	if queue := query.Get("queue"); queue != "" {
		if o.Queue, err = strconv.Atoi(queue); err != nil || o.Queue < 0 {
			return o, badParameter("queue", queue,
				"how many callers may wait, such as "+strconv.Itoa(DefaultQueue))
		}
	}
	query.Del("prefix")
	query.Del("queue")
	if err := checkNumbers(query); err != nil {
		return o, err
	}
	for _, name := range []string{"dial_timeout", "read_timeout"} { // and write_timeout follows
		if query.Get(name) == "" {
			query.Set(name, defaultTimeout)
		}
	}
	u.RawQuery = query.Encode()
	return o, nil
}

// leastNumber has the least values of those parameters at which go-redis panics, now or much later,
// or sends nothing.
var leastNumber = map[string]int{
	"max_redirects": -1, "max_retries": -1, "pipeline_pool_size": -1, "pool_size": 0,
}

// checkNumbers rejects numbers that go-redis does not refuse by itself.
func checkNumbers(query url.Values) error {
	const largest = 1 << 20
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		if strings.HasSuffix(name, "_timeout") && strings.HasPrefix(value, "-") {
			return badParameter(name, value, "more than 0, or 0 for none")
		}
		least, known := leastNumber[name]
		if n, err := strconv.Atoi(value); known && err == nil && (n < least || n > largest) {
			return badParameter(name, value, strconv.Itoa(least)+" to "+strconv.Itoa(largest))
		}
	}
	return nil
}

func badParameter(name, value, want string) error {
	return invalid(name+" in the store URL", strconv.Quote(value), want)
}

func newClient(u *url.URL, kind string) (client redis.UniversalClient, err error) {
	defer func() {
		if p := recover(); p != nil { // at parameters that do not fit together
			err = fmt.Errorf("%v", p)
		}
	}()
	switch kind {
	case "cluster":
		return newCluster(u)
	case "sentinel":
		return newSentinel(u)
	}
	if u.Query().Has("addr") {
		return nil, invalid("store URL", "of several hosts",
			"one host; several are for redis+cluster:// and redis+sentinel://")
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	o.DialerRetries = dialerRetries // which has no parameter
	o.DisableIdentity = true        // which users with few rights may not send
	o.PipelinePoolSize = -1         // no connections of their own
	return redis.NewClient(o), nil
}

func newCluster(u *url.URL) (redis.UniversalClient, error) {
	if strings.Trim(u.Path, "/") != "" {
		return nil, invalid("store URL", "of a Cluster with a database",
			"nothing after the hosts, because a Cluster has only one database")
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialerRetries)
	o.DisableIdentity = true
	return redis.NewClusterClient(o), nil
}

// newSentinel moves the name of the master from the path to the query, where go-redis expects it.
func newSentinel(u *url.URL) (redis.UniversalClient, error) {
	name, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	query := u.Query()
	if name != "" {
		query.Set("master_name", name)
	}
	u.Path, u.RawQuery = db, query.Encode()
	if query.Get("master_name") == "" {
		return nil, invalid("store URL", "without a master",
			"redis+sentinel://host:port/master-name")
	}
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialerRetries)
	o.DisableIdentity = o.IdentitySuffix == ""
	o.PipelinePoolSize = -1
	return redis.NewFailoverClient(o), nil
}

// The errors show nothing of a URL but its scheme and its parameters: a password may be anywhere in
// a URL that was not understood.

// refused makes one error of what go-redis says about u.
func refused(u *url.URL, err error) error {
	if _, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return err
	}
	text := strings.TrimPrefix(err.Error(), "redis: ")
	name, unknown := strings.CutPrefix(text, "unexpected option: ")
	switch {
	case unknown && u.Query().Has("password"): // of which it may be the rest
		return invalid("store URL", "malformed", wantURL+wantEscaped)
	case unknown:
		return invalid("parameter "+strconv.Quote(name)+" of the store URL", "unknown",
			"prefix, queue, or one of go-redis, such as dial_timeout, read_timeout or pool_size")
	}
	return invalid("store URL", "invalid: "+text, wantURL)
}

func malformedURL(rawURL string) error {
	want := wantURL
	if strings.Contains(rawURL, "@") {
		want += wantEscaped
	}
	return invalid("store URL", "malformed", want)
}
