// Package ginlimit limits the requests of Gin servers with the options of package httplimit.
//
//	limit, err := ginlimit.New(limiter, ginlimit.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	engine := gin.New()
//	engine.Use(limit)
package ginlimit

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// Options configures [New]. The functions get the context of Gin: its route, parameters and values,
// such as the user that an earlier middleware found.
type Options = httplimit.OptionsOf[*gin.Context, DenyFunc]

// DenyFunc denies a request: see [httplimit.OptionsOf.Denied]. It is called after the handlers
// behind the middleware were aborted.
type DenyFunc = func(c *gin.Context, denied []headgate.Decision)

// Key adapts a key function of httplimit to Gin. The address of the client is that of httplimit:
// Gin's own ClientIP trusts every client, unless you set the trusted proxies.
func Key(k httplimit.KeyFunc) func(*gin.Context) string {
	key := httplimit.Key(k)
	return func(c *gin.Context) string { return key(c.Request) }
}

// New makes a middleware. A denied request is aborted: the handlers after the middleware do not
// run. With Count, the cost is refunded after the handlers return; the client may get the response
// before the refund. New returns a [headgate.InvalidError] if l is nil or the options are invalid.
func New(l *headgate.Limiter, o Options) (gin.HandlerFunc, error) {
	if o.Key == nil {
		o.Key = Key(httplimit.RemoteAddress)
	}
	d, err := httplimit.NewDecider(l, o)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		ctx := c.Request.Context() // which a handler may replace
		v := d.Decide(ctx, c, c.Writer.Header())
		switch {
		case v.Status == 0:
			c.Next()
			d.Outcome(ctx, c, v, c.Writer.Status())
		case v.Status == http.StatusTooManyRequests && d.Denied != nil:
			c.Abort()
			d.Denied(c, v.Denied)
		default:
			c.Abort()
			v.Write(c.Writer)
		}
	}, nil
}
