package redisstore

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/redis/go-redis/v9"
)

const wantURL = "redis://[user:password@]host[:port][/db], rediss:// for TLS, " +
	"redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master-name"

const wantEscaped = "in a password write %25 for %, %20 for a space, " +
	"%2F for /, %23 for #, %3F for ?"

// Open makes a store from a URL, with a client of its own that [Store.Close] closes.
// It connects when first used. If a context ends before a connection is made, the error includes
// the last dial error. The forms are
//
//	redis://[user:password@]host[:port][/db]
//	redis+cluster://[user:password@]host:port[,host:port…]
//	redis+sentinel://[user:password@]host:port[,host:port…]/master-name[/db]
//
// and rediss, rediss+cluster and rediss+sentinel for TLS. Query parameters are those of go-redis,
// such as dial_timeout=1s and pool_size=20, each once; prefix and queue set those of [Options].
// Errors are headgate.InvalidErrors and contain no password.
func Open(rawURL string) (*Store, error) {
	s, err := open(rawURL)
	if err != nil && mistaken(rawURL) {
		return nil, malformedURL(wantURL + "; " + wantEscaped)
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
	client, o, err := newClient(rawURL)
	if err != nil {
		return nil, err
	}
	s, err := New(client, o)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.owned = true
	s.dialErrors.watch(client)
	return s, nil
}

func newClient(rawURL string) (client redis.UniversalClient, o Options, err error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	plain, kind, _ := strings.Cut(scheme, "+")
	u, err := parseHosts(rawURL)
	if _, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return nil, o, err
	}
	if plain != "redis" && plain != "rediss" {
		return nil, o, badScheme(rawURL)
	}
	if err != nil {
		return nil, o, malformedURL(wantURL + "; " + wantEscaped)
	}
	u.Scheme = plain
	if err := checkParameters(u.Query()); err != nil {
		return nil, o, err
	}
	o = takeOptions(u)
	switch kind {
	case "":
		client, err = newSingle(u)
	case "cluster":
		client, err = newCluster(u)
	case "sentinel":
		client, err = newSentinel(u)
	default:
		return nil, o, badScheme(rawURL)
	}
	if err != nil {
		return nil, o, malformedURL(want(err, u))
	}
	return client, o, nil
}

// takeOptions removes the parameters of [Options] from the query of u, which has been checked.
func takeOptions(u *url.URL) (o Options) {
	query := u.Query()
	o.Prefix = query.Get("prefix")
	o.Queue, _ = strconv.Atoi(query.Get("queue"))
	query.Del("prefix")
	query.Del("queue")
	u.RawQuery = query.Encode()
	return o
}

// want says what is accepted instead of a URL that go-redis refused with err. It repeats nothing of
// err that may contain part of a password.
func want(err error, u *url.URL) string {
	option, unknown := strings.CutPrefix(err.Error(), "redis: unexpected option: ")
	switch {
	case unknown && (u.Query().Has("password") || u.Query().Has("sentinel_password")):
		// The unknown parameter may be the rest of a password.
		return "query parameters of go-redis, and in a password %26 for &"
	case unknown:
		return "query parameters of go-redis; " + strconv.Quote(option) + " is unknown"
	case errors.Is(err, errNoMaster):
		return "the name of the master after the hosts: redis+sentinel://host:port/master-name"
	case errors.Is(err, errHosts):
		return "one host; several are for redis+cluster:// and redis+sentinel://"
	case errors.Is(err, errDatabases):
		return "no database after the hosts: a Cluster has only one; " + wantEscaped
	case strings.Contains(err.Error(), "invalid database number"),
		strings.Contains(err.Error(), "invalid URL path"):
		return "a database number after the host; " + wantEscaped
	default:
		return "valid query parameters, such as dial_timeout=1s; " + wantURL
	}
}

var (
	errNoMaster  = errors.New("no master name")
	errDB        = errors.New("invalid database number")
	errDatabases = errors.New("a Cluster has no databases")
	errHosts     = errors.New("several hosts")
)

func newSingle(u *url.URL) (redis.UniversalClient, error) {
	if u.Query().Has("addr") {
		return nil, errHosts
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	if o.DB < 0 {
		return nil, errDB
	}
	return redis.NewClient(o), nil
}

func newCluster(u *url.URL) (redis.UniversalClient, error) {
	if strings.Trim(u.Path, "/") != "" {
		return nil, errDatabases
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, err
	}
	return redis.NewClusterClient(o), nil
}

// newSentinel moves the name of the master from the path to the query, as go-redis has it.
func newSentinel(u *url.URL) (redis.UniversalClient, error) {
	name, db, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	query := u.Query()
	if name != "" {
		query.Set("master_name", name)
		query.Set("db", "0")
	}
	if db != "" {
		query.Set("db", db)
	}
	u.Path, u.RawQuery = "", query.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, err
	}
	if o.MasterName == "" {
		return nil, errNoMaster
	}
	if o.DB < 0 {
		return nil, errDB
	}
	return redis.NewFailoverClient(o), nil
}

// parseHosts parses a URL with one or more hosts, separated by commas. The first stays the host;
// the others become addr parameters, as in go-redis.
func parseHosts(rawURL string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return nil, strconv.ErrSyntax
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i+1], authority[i+1:]
	}
	hosts := strings.Split(authority, ",")
	if err := checkHosts(hosts); err != nil {
		return nil, err
	}
	u, err := url.Parse(scheme + "://" + user + hosts[0] + tail)
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts[1:] {
		query.Add("addr", host)
	}
	u.RawQuery = query.Encode()
	return u, nil
}

// The errors show nothing of a URL but its scheme: a password may be anywhere in a URL that was not
// understood.

func badScheme(rawURL string) error {
	scheme, _, ok := strings.Cut(rawURL, "://")
	if !ok {
		scheme = "without a scheme"
	} else {
		scheme = "of scheme " + strconv.Quote(scheme)
	}
	return invalid("store URL", scheme, wantURL)
}

func malformedURL(want string) error {
	return invalid("store URL", "malformed", want)
}
