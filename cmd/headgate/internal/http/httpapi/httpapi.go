// Package httpapi is the HTTP/JSON interface of the server: decisions, reservations, permits and
// overrides, for programs in every language.
//
// openapi.yaml describes it. All durations are seconds as decimal numbers, to the microsecond; one
// that never ends is left out. Errors are problem documents (RFC 9457).
package httpapi

import (
	_ "embed"
	"net/http"
	"path"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/problem"
	"github.com/headgate/headgate/redisstore"
)

// Options configures a [Handler]. All fields but Redis are required.
type Options struct {
	Engine    *rules.Engine
	Permits   concurrency.Store
	Overrides *overrides.Table

	// Redis keeps the key that signs ids. Default: the key of this process, which signs no ids of
	// other instances.
	Redis *redisstore.Store
}

// The largest bodies and texts that are read, in bytes.
const (
	MaxBody    = 64 << 10
	maxBodyAll = 512 << 10 // of take-all
	MaxKey     = 4096
	MaxNote    = 500
	MaxBy      = 100 // the name of a person
)

// Settings are what may change while the server runs.
type Settings struct {
	Tokens            []string // bearer tokens; none: no token is asked for
	AllowInlineLimits bool
}

// Handler serves /v1/. It is safe for use by many goroutines.
type Handler struct {
	options  Options
	settings atomic.Pointer[settings]
	mux      *http.ServeMux
	serve    http.Handler // mux, behind CleanPaths
	guard    *http.CrossOriginProtection
	loopback bool // only this machine can connect
	ids      *idKey
}

type settings struct {
	tokens       tokens
	inlineLimits bool
}

//go:embed openapi.yaml
var openAPI []byte

// New makes a Handler. It treats the listener as public until [Handler.Listen] is called.
func New(o Options, s Settings) *Handler {
	h := &Handler{
		options: o, mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(),
		ids: newIDKey(o.Redis),
	}
	h.Use(s)
	h.routes()
	h.serve = h.CleanPaths(h.mux)
	return h
}

// Use replaces the settings.
func (h *Handler) Use(s Settings) {
	h.settings.Store(&settings{tokens: newTokens(s.Tokens), inlineLimits: s.AllowInlineLimits})
}

func (h *Handler) routes() {
	h.path("/v1/take", http.MethodPost, program, h.take)
	h.path("/v1/take-all", http.MethodPost, program, h.takeAll)
	h.path("/v1/peek", http.MethodPost, program, h.peek)
	h.path("/v1/refund", http.MethodPost, operator, h.refund)
	h.path("/v1/reserve", http.MethodPost, program, h.reserve)
	h.path("/v1/commit", http.MethodPost, program, h.commit)
	h.path("/v1/acquire", http.MethodPost, program, h.acquire)
	h.path("/v1/renew", http.MethodPost, program, h.renew)
	h.path("/v1/release", http.MethodPost, program, h.release)
	h.path("/v1/keys/{rule}/{key...}", http.MethodDelete, operator, h.resetKey)
	h.mux.Handle("PUT /v1/overrides", h.guarded(operator, h.putOverride))
	h.path("/v1/overrides", http.MethodGet, operator, h.listOverrides)
	h.path("/v1/overrides/{rule}/{key...}", http.MethodDelete, operator, h.deleteOverride)
	h.mux.HandleFunc("GET /v1/openapi.yaml", serveOpenAPI)
	for _, pattern := range []string{"/v1/keys/{rule}", "/v1/overrides/{rule}", "/"} {
		// The mux would redirect the first two.
		h.mux.Handle(pattern, h.guarded(program, noSuchPath))
	}
}

func noSuchPath(http.ResponseWriter, *http.Request) error {
	return &problem.Problem{Status: http.StatusNotFound,
		Detail: "the path does not exist; /v1/openapi.yaml lists all paths"}
}

// path serves one method of a path, and refuses the others.
func (h *Handler) path(pattern, method string, by caller, f handlerFunc) {
	h.mux.Handle(method+" "+pattern, h.guarded(by, f))
	allow := method
	if pattern == "/v1/overrides" {
		allow = "GET, PUT"
	}
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		WriteError(w, &problem.Problem{Status: http.StatusMethodNotAllowed,
			Detail: "the method is not allowed; want " + allow})
	})
}

// ServeHTTP serves a request for /v1/.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.serve.ServeHTTP(w, r) }

// CleanPaths answers paths such as //v1/take with a problem, where a ServeMux would redirect them.
// A client that follows the redirect to /v1/keys/RULE/a/b would reset another key than a//b.
func (h *Handler) CleanPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		was := r.URL.EscapedPath()
		clean := cleanPath(was)
		if was == clean {
			next.ServeHTTP(w, r)
			return
		}
		h.guarded(program, func(http.ResponseWriter, *http.Request) error {
			return &problem.Problem{Status: http.StatusNotFound,
				Detail: "the path is " + jsonbody.Quote(was) + "; want " + jsonbody.Quote(clean) +
					", or %2F and %2E for slashes and dots in a key"}
		}).ServeHTTP(w, r)
	})
}

// handlerFunc serves a request, or returns an error before it has written anything.
type handlerFunc func(http.ResponseWriter, *http.Request) error

// guarded serves only requests that authorize lets through.
func (h *Handler) guarded(by caller, f handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		err := h.authorize(r, by)
		if err == nil {
			err = f(w, r)
		}
		if err != nil {
			WriteError(w, err)
		}
	})
}

// GuardOperator puts the checks of /v1/overrides in front of another handler.
func (h *Handler) GuardOperator(next http.Handler) http.Handler {
	return h.guarded(operator, func(w http.ResponseWriter, r *http.Request) error {
		next.ServeHTTP(w, r)
		return nil
	})
}

// cleanPath returns the path that a ServeMux would redirect to.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	clean := path.Clean(p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return clean
}

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
}
