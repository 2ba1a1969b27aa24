// Huma limits the operations of a Huma API, each at the cost in its metadata.
//
//	go run ./examples/with/huma
//	curl -i localhost:8080/export
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func main() {
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("Example", "1.0.0"))
	if err := limit(api, headgate.PerMinute(20)); err != nil {
		log.Fatal(err)
	}
	huma.Get(api, "/export", func(context.Context, *struct{}) (*struct{ Body string }, error) {
		return &struct{ Body string }{"a file"}, nil
	}, func(o *huma.Operation) { o.Metadata = map[string]any{"cost": 10} })
	server := &http.Server{Addr: "localhost:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// limit limits the operations that are registered after it. Unwrap is that of the api's adapter.
func limit(api huma.API, l headgate.Limit) error {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), l)
	if err != nil {
		return err
	}
	d, err := httplimit.NewDecider(limiter, httplimit.OptionsOf[huma.Context, any]{
		Key: func(c huma.Context) string {
			r, _ := humago.Unwrap(c)
			return httplimit.Key(httplimit.RemoteAddress)(r)
		},
		Cost: func(c huma.Context) int64 {
			cost, _ := c.Operation().Metadata["cost"].(int)
			return int64(max(cost, 1))
		},
		Count: func(status int) bool { return status < 500 }, // refunds what fails in the server
	})
	api.UseMiddleware(func(c huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(c)
		v := d.Decide(c.Context(), c, w.Header())
		if v.Status != 0 {
			v.Write(w)
			return
		}
		next(c)
		d.Outcome(c.Context(), c, v, c.Status())
	})
	return err
}
