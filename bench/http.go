package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// middleware makes a contender of a middleware in front of a handler that does nothing. Requests
// and answers are reused, so that all allocations are the middleware's.
func middleware(
	mount func(Setup, http.Handler) (http.Handler, error),
) func(Setup) (Contender, error) {
	return func(s Setup) (Contender, error) {
		h, err := mount(s, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		if err != nil {
			return nil, err
		}
		probe := newExchange()
		probe.request.RemoteAddr = "192.0.2.1:1" // a client that no workload has
		h.ServeHTTP(probe, probe.request)
		if len(probe.header) == 0 {
			return nil, errors.New("the middleware sets no header field")
		}
		return &server{h: h}, nil
	}
}

// server is a contender whose keys are the addresses of clients.
type server struct {
	h         http.Handler
	exchanges sync.Pool // of *exchange
}

func (c *server) Take(_ context.Context, address string) (bool, error) {
	x, _ := c.exchanges.Get().(*exchange)
	if x == nil {
		x = newExchange()
	}
	defer c.exchanges.Put(x)
	clear(x.header)
	x.status = http.StatusOK
	x.request.RemoteAddr = address
	c.h.ServeHTTP(x, x.request)
	if x.status != http.StatusOK && x.status != http.StatusTooManyRequests {
		return false, fmt.Errorf("status %d", x.status)
	}
	return x.status == http.StatusOK, nil
}

// exchange is a request and the [http.ResponseWriter] of its answer.
type exchange struct {
	request *http.Request
	header  http.Header
	status  int
}

func newExchange() *exchange {
	r, err := http.NewRequest(http.MethodGet, "/", http.NoBody) //nolint:noctx // as a server's
	if err != nil {
		panic(err) // cannot happen: the path is fixed
	}
	return &exchange{request: r, header: make(http.Header)}
}

func (x *exchange) Header() http.Header         { return x.header }
func (x *exchange) WriteHeader(status int)      { x.status = status }
func (x *exchange) Write(b []byte) (int, error) { return len(b), nil }
