// Package echolimit limits the requests of Echo servers with the options of package httplimit.
//
//	limit, err := echolimit.New(limiter, echolimit.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	e := echo.New()
//	e.Use(limit)
//
// [NewRateLimiterStore] makes a store for Echo's own RateLimiter instead.
package echolimit

import (
	"context"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// Options configures [New]. The functions get the context of Echo: its route, parameters and
// values, such as the user that an earlier middleware found.
type Options = httplimit.OptionsOf[*echo.Context, DenyFunc]

// DenyFunc denies a request: see [httplimit.OptionsOf.Denied]. It may return an error for Echo's
// HTTPErrorHandler.
type DenyFunc = func(c *echo.Context, denied []headgate.Decision) error

// Key adapts a key function of httplimit to Echo.
func Key(k httplimit.KeyFunc) func(*echo.Context) string {
	key := httplimit.Key(k)
	return func(c *echo.Context) string { return key(c.Request()) }
}

// New makes a middleware. With Count, the cost is refunded after the handler returns; the client
// may get the response before the refund. If the handler returns an error, the HTTPErrorHandler of
// the app writes the response first, because the status decides whether the cost is refunded. New
// returns a [headgate.InvalidError] if l is nil or the options are invalid.
func New(l *headgate.Limiter, o Options) (echo.MiddlewareFunc, error) {
	if o.Key == nil {
		o.Key = Key(httplimit.RemoteAddress)
	}
	d, err := httplimit.NewDecider(l, o)
	if err != nil {
		return nil, err
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			ctx := c.Request().Context() // which a handler may replace
			v := d.Decide(ctx, c, c.Response().Header())
			switch {
			case v.Status == http.StatusTooManyRequests && d.Denied != nil:
				return d.Denied(c, v.Denied)
			case v.Status != 0:
				v.Write(c.Response())
				return nil
			}
			err := next(c)
			if err != nil && v.Counted {
				c.Echo().HTTPErrorHandler(c, err)
				err = nil
			}
			_, status := echo.ResolveResponseStatus(c.Response(), err)
			d.Outcome(ctx, c, v, status)
			return err
		}
	}, nil
}

// NewRateLimiterStore makes a store for [middleware.RateLimiter]. That middleware chooses the key
// and the response. It denies if the store fails. Allowed and denied responses get all header
// fields.
func NewRateLimiterStore(l *headgate.Limiter) middleware.RateLimiterStore { return store{l} }

type store struct{ limiter *headgate.Limiter }

// Allow is called by versions of Echo before 5.4.
func (s store) Allow(key string) (bool, error) {
	d, err := s.limiter.Allow(context.Background(), key)
	return d.Allowed(), err
}

// AllowContext implements [middleware.RateLimiterStoreContext].
func (s store) AllowContext(c *echo.Context, key string) (bool, error) {
	ds, err := s.limiter.AllowEach(c.Request().Context(), key, 1, nil)
	httplimit.AllFields.Write(c.Response().Header(), time.Now(), ds...)
	return err == nil && (len(ds) == 0 || headgate.Strictest(ds).Allowed()), err
}
