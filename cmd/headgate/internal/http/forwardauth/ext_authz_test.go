package forwardauth

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/proxy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/fallback"
)

// asked describes a request as Envoy does.
func asked(method, target string, header http.Header) *authv3.CheckRequest {
	r := &authv3.AttributeContext_HttpRequest{
		Method: method, Host: "app", Path: target,
		Headers: map[string]string{":path": target, ":authority": "app"},
	}
	for name, values := range header {
		r.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: r},
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{
			Address: &corev3.Address_SocketAddress{
				SocketAddress: &corev3.SocketAddress{Address: "198.51.100.7"},
			},
		}},
	}}
}

func engine(t *testing.T, store headgate.Store, list ...rules.Rule) *rules.Engine {
	t.Helper()
	set, err := rules.NewSet(list)
	if err != nil {
		t.Fatal(err)
	}
	e := rules.New(store, nil, rules.Options{})
	e.Use(set)
	return e
}

func address(t *testing.T) func(*http.Request) netip.Addr {
	t.Helper()
	find, err := rules.ClientAddress([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	return find
}

// Whatever a client sends, ext_authz decides as the proxy does.
func TestExtAuthzDecidesAsTheProxy(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	denials := 0
	for _, method := range []string{"POST", "GET", "HEAD", "PSOT"} {
		for _, target := range []string{
			"/login", "/login?a", "/login/", "//login", "/./login", "/a/../login", "/%6cogin", "/login%2f",
			"/login;v=1", "/login%3bv", "/LOGIN", "/login%00", "/a%2f..%2flogin", "/logi",
			"/api/x", "/api", "/api/../login", "/" + strings.Repeat("a", 8000), "/%ff", "/%zz",
		} {
			for _, header := range []http.Header{
				{}, {"X-Forwarded-Uri": {"/free"}, "X-Original-Uri": {"/free"}},
				{"X-Forwarded-Method": {"GET"}, "X-Forwarded-Host": {"other"}},
				{"X-Forwarded-For": {"203.0.113.9"}}, {"Authorization": {"Bearer a"}},
				{"X-Large": {strings.Repeat("a", 60_000)}},
			} {
				denials += bothDecide(t, app.URL, method, target, header)
			}
		}
	}
	if denials < 100 {
		t.Errorf("%d denials", denials)
	}
}

// bothDecide sends a request twice to a proxy and as Envoy does, and returns the number of denials,
// which must be the same.
func bothDecide(t *testing.T, app, method, target string, header http.Header) (denials int) {
	t.Helper()
	list := []rules.Rule{login(1), {
		Name: "credential", Match: rules.Match{Path: "/api/*"},
		Key:    []rules.KeyPart{{Source: "header", Name: "Authorization"}},
		Limits: []headgate.Limit{headgate.PerHour(1)},
	}}
	p, err := proxy.New(engine(t, headgate.NewMemory(), list...), app, proxy.Options{
		Client: address(t), Trusted: func(*http.Request) bool { return false },
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := NewExtAuthz(engine(t, headgate.NewMemory(), list...), address(t))
	r := httptest.NewRequestWithContext(t.Context(), method, "http://app", nil)
	if r.URL, err = url.ParseRequestURI(target); err != nil {
		return 0 // a server refuses it
	}
	r.RemoteAddr = "198.51.100.7:1234"
	for range 2 {
		r.Header = header.Clone()
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		c, err := s.Check(t.Context(), asked(method, target, header))
		if err != nil {
			t.Fatal(err)
		}
		envoy := c.GetDeniedResponse()
		if (w.Code == http.StatusTooManyRequests) != (envoy != nil) {
			t.Errorf("%s %.40s %.60s: the proxy %d, Envoy %v", method, target, fmt.Sprint(header), w.Code, envoy)
		}
		if envoy != nil {
			denials++
		}
	}
	return denials
}

// Every door counts by the query that the client sends, in whatever spelling.
func TestQueryKey(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	rule := rules.Rule{
		Name: "keys", Key: []rules.KeyPart{{Source: "query", Name: "key"}},
		Limits: []headgate.Limit{headgate.PerHour(1)},
	}
	p, err := proxy.New(engine(t, headgate.NewMemory(), rule), app.URL, proxy.Options{
		Client: address(t), Trusted: func(*http.Request) bool { return false },
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	auth := newHandler(t, headgate.NewMemory(), rule)
	authz := NewExtAuthz(engine(t, headgate.NewMemory(), rule), address(t))
	for name, allows := range map[string]func(target string) bool{
		"proxy": func(target string) bool { return ask(p, "GET", "http://app"+target).status == 200 },
		"auth": func(target string) bool {
			return ask(auth, "GET", "http://app/auth?key=gateway", "X-Forwarded-Uri: "+target).status == 200
		},
		"ext_authz": func(target string) bool {
			res, err := authz.Check(t.Context(), asked("GET", target, nil))
			return err == nil && res.GetStatus().GetCode() == int32(codes.OK)
		},
	} {
		for _, c := range []struct {
			target string
			want   bool
		}{
			{"/?key=a", true}, {"/?x=1&Key=%61", false}, {"/?key=b&key=b", true}, {"/y?key=a&key=c", true},
			{"/?key=c&key=d", false}, {"/?", true}, {"/key=e", false},
		} {
			if got := allows(c.target); got != c.want {
				t.Errorf("%s: %s is allowed: %t", name, c.target, got)
			}
		}
	}
}

// An answer has the fields of limits, a document, and what an access log can show.
func TestExtAuthzAnswers(t *testing.T) {
	s := NewExtAuthz(engine(t, headgate.NewMemory(), login(1)), address(t))
	fields := func(list []*corev3.HeaderValueOption) http.Header {
		h := make(http.Header)
		for _, f := range list {
			h.Set(f.GetHeader().GetKey(), f.GetHeader().GetValue())
		}
		return h
	}
	in := asked("POST", "/login", nil)
	in.Attributes.ContextExtensions = map[string]string{"rule": "login"}
	in.Attributes.Request.Http.Path = "/other" // the rule is named
	ok, err := s.Check(t.Context(), in)
	if err != nil || ok.GetStatus().GetCode() != 0 ||
		fields(ok.GetOkResponse().GetResponseHeadersToAdd()).Get("X-Ratelimit-Remaining") != "0" {
		t.Errorf("%v, %v", ok, err)
	}
	no, err := s.Check(t.Context(), in)
	d, meta := no.GetDeniedResponse(), no.GetDynamicMetadata().AsMap()
	if err != nil || codes.Code(no.GetStatus().GetCode()) == codes.OK ||
		fields(d.GetHeaders()).Get("Retry-After") != "3600" ||
		fields(d.GetHeaders()).Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(d.GetBody(), "The rule login is exceeded.") ||
		meta["rule"] != "login" || meta["allowed"] != false || meta["remaining"] != 0.0 {
		t.Errorf("%v, %v", no, err)
	}
}

// What cannot be decided is an error, for Envoy's failure_mode_allow, unless the store's policy
// denies.
func TestExtAuthzFails(t *testing.T) {
	closed, err := fallback.New(failing{}, fallback.Options{Mode: fallback.Closed})
	if err != nil {
		t.Fatal(err)
	}
	named := asked("POST", "/login", nil)
	named.Attributes.ContextExtensions = map[string]string{"rule": "none"}
	for name, c := range map[string]struct {
		store headgate.Store
		in    *authv3.CheckRequest
		want  codes.Code
	}{
		"no rule":       {headgate.NewMemory(), named, codes.InvalidArgument},
		"not HTTP":      {headgate.NewMemory(), &authv3.CheckRequest{}, codes.InvalidArgument},
		"a store fails": {failing{}, asked("POST", "/login", nil), codes.Unavailable},
		"closed":        {closed, asked("POST", "/login", nil), codes.OK},
	} {
		got, err := NewExtAuthz(engine(t, c.store, login(1)), address(t)).Check(t.Context(), c.in)
		if status.Code(err) != c.want || err == nil && got.GetDeniedResponse().GetStatus().GetCode() != 503 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Fields that are sent one by one, with bytes that are not UTF-8, are read as they are.
func TestExtAuthzRawFields(t *testing.T) {
	r := asked("POST", "/login", nil).GetAttributes().GetRequest().GetHttp()
	r.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: ":path", RawValue: []byte("/")}, {Key: "x-a", RawValue: []byte("\xff")},
		{Key: "x-a", Value: "b"},
	}}
	if h := headerOf(r); len(h) != 1 || strings.Join(h["X-A"], ",") != "\xff,b" {
		t.Errorf("%q", h)
	}
}

// A rule that holds requests does not hold those of Envoy, whose time-out it does not know. A call
// over gRPC gets a status of gRPC, and a client behind a Unix socket its address.
func TestExtAuthzOfEachKind(t *testing.T) {
	rule := login(1)
	rule.MaxWait = 20 * time.Second
	s := NewExtAuthz(engine(t, headgate.NewMemory(), rule), address(t))
	in := asked("POST", "/login", http.Header{
		"Content-Type": {"application/grpc"}, "X-Forwarded-For": {"203.0.113.9"},
	})
	in.Attributes.Source = nil // a Unix socket
	var last *authv3.CheckResponse
	for range 2 {
		var err error
		if last, err = s.Check(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	d := last.GetDeniedResponse()
	got := make(map[string]string)
	for _, f := range d.GetHeaders() {
		got[f.GetHeader().GetKey()] = f.GetHeader().GetValue()
	}
	if d.GetStatus().GetCode() != 429 || got["Grpc-Status"] != "8" || got["Grpc-Status-Details-Bin"] == "" ||
		d.GetBody() != "The rule login denies this call." {
		t.Errorf("%v", last)
	}
	in = asked("POST", "/login", http.Header{"X-Forwarded-For": {"203.0.113.8"}})
	in.Attributes.Source = nil
	if other, err := s.Check(t.Context(), in); err != nil || other.GetOkResponse() == nil {
		t.Errorf("another client behind a Unix socket: %v, %v", other, err)
	}
}
