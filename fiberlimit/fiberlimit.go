// Package fiberlimit limits the requests of Fiber servers with the options of package httplimit.
//
//	limit, err := fiberlimit.New(limiter, fiberlimit.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	app := fiber.New()
//	app.Use(limit)
package fiberlimit

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// Options configures [New]. The functions get the context of Fiber: its route, parameters and
// locals, such as the user that an earlier middleware found.
type Options = httplimit.OptionsOf[fiber.Ctx, DenyFunc]

// DenyFunc denies a request: see [httplimit.OptionsOf.Denied]. It may return an error for Fiber's
// ErrorHandler.
type DenyFunc = func(c fiber.Ctx, denied []headgate.Decision) error

// Key adapts a key function of httplimit to Fiber. The address of the client is that of
// httplimit, whatever Fiber's TrustProxy is.
func Key(k httplimit.KeyFunc) func(fiber.Ctx) string {
	return func(c fiber.Ctx) string { return k(request{c}) }
}

// request is a Request of httplimit. Its texts are valid until the handler returns.
type request struct{ fiber.Ctx }

func (r request) Context() context.Context { return r.Ctx.Context() }
func (r request) RemoteAddr() string       { return r.RequestCtx().RemoteAddr().String() }
func (r request) Host() string             { return string(r.Request().Header.Host()) }
func (r request) Path() string             { return string(r.Request().URI().Path()) }
func (r request) Field(name string) []string {
	var values []string
	for _, value := range r.Request().Header.PeekAll(name) {
		values = append(values, string(value))
	}
	return values
}

// New makes a middleware. With Count, the middleware calls Fiber's ErrorHandler if the handlers
// return an error, and refunds the cost before the response is sent. Fiber does not report that a
// client has left, so Count also gets the status of a response that no client receives. New returns
// a [headgate.InvalidError] if l is nil or the options are invalid.
func New(l *headgate.Limiter, o Options) (fiber.Handler, error) {
	key := Key(httplimit.RemoteAddress)
	if o.Key != nil {
		key = o.Key
	}
	// Fiber uses the memory of its texts again, and a store may keep the key.
	o.Key = func(c fiber.Ctx) string { return strings.Clone(key(c)) }
	d, err := httplimit.NewDecider(l, o)
	if err != nil {
		return nil, err
	}
	return func(c fiber.Ctx) error {
		fields := make(map[string][]string, 6)
		v := d.Decide(c.Context(), c, fields)
		set(c, fields)
		switch {
		case v.Status == http.StatusTooManyRequests && d.Denied != nil:
			return d.Denied(c, v.Denied)
		case v.Status != 0:
			c.Set(fiber.HeaderContentType, "application/problem+json")
			return c.Status(v.Status).Send(v.Problem())
		}
		err := c.Next()
		if v.Counted {
			if err != nil {
				err = c.App().ErrorHandler(c, err) // which decides the status
			}
			d.Outcome(c.Context(), c, v, c.Response().StatusCode())
		}
		return err
	}, nil
}

// set sets header fields. The lists of RateLimit are added to those of an outer limiter.
func set(c fiber.Ctx, fields map[string][]string) {
	for name, values := range fields {
		for _, value := range values {
			if strings.HasPrefix(name, "Ratelimit") {
				c.Response().Header.Add(name, value)
			} else {
				c.Response().Header.Set(name, value)
			}
		}
	}
}
