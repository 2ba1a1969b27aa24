package main

import (
	"fmt"
	"net/http"
	"sync"
)

// httpStore is the Store of the cells measured through a middleware in this process.
const httpStore = "http"

// httpField is every middleware: limiting each client address, with the header fields
// that it can set, in front of a handler that does nothing.
func httpField() []Entry {
	return []Entry{
		{Name: headgateName, Open: middleware(headgateMiddleware)},
		{Name: httprateName, Open: middleware(httprateMiddleware)},
		{Name: "didip/tollbooth", Open: middleware(tollboothMiddleware)},
		{Name: "ulule/limiter", Open: middleware(ululeMiddleware)},
		{Name: goLimiterName, Open: middleware(goLimiterMiddleware)},
	}
}

// A mount puts a limiter of these terms in front of a handler.
type mount func(Setup, http.Handler) (http.Handler, error)

// middleware makes a contender of a middleware. Requests and answers are reused, so
// that what is allocated is the middleware's.
func middleware(m mount) func(Setup) (Contender, error) {
	return func(s Setup) (Contender, error) {
		h, err := m(s, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		if err != nil {
			return nil, err
		}
		if err := tells(h); err != nil {
			return nil, err
		}
		return &httpContender{h: h}, nil
	}
}

// tells checks that h sets header fields for a client of its own.
func tells(h http.Handler) error {
	x := newExchange()
	x.request.RemoteAddr = "192.0.2.1:1"
	h.ServeHTTP(x, x.request)
	if len(x.header) == 0 {
		return fmt.Errorf("the middleware sets no header field")
	}
	return nil
}

type httpContender struct {
	h         http.Handler
	exchanges sync.Pool // of *exchange
}

// Take serves a request of the client at that address.
func (c *httpContender) Take(address string) (bool, error) {
	x, _ := c.exchanges.Get().(*exchange)
	if x == nil {
		x = newExchange()
	}
	defer c.exchanges.Put(x)
	clear(x.header)
	x.status = http.StatusOK
	x.request.RemoteAddr = address
	c.h.ServeHTTP(x, x.request)
	switch x.status {
	case http.StatusOK, http.StatusTooManyRequests:
		return x.status == http.StatusOK, nil
	}
	return false, fmt.Errorf("status %d", x.status)
}

// exchange is a request and the [http.ResponseWriter] of its answer.
type exchange struct {
	request *http.Request
	header  http.Header
	status  int
}

func newExchange() *exchange {
	r, err := http.NewRequest(http.MethodGet, "/", http.NoBody) //nolint:noctx // the background's, as a server's
	if err != nil {
		panic(err) // cannot happen: the path is fixed
	}
	return &exchange{request: r, header: make(http.Header)}
}

func (x *exchange) Header() http.Header         { return x.header }
func (x *exchange) WriteHeader(status int)      { x.status = status }
func (x *exchange) Write(b []byte) (int, error) { return len(b), nil }
