// Gqlgen limits the GraphQL queries of each API key by their complexity.
//
//	go run ./examples/with/gqlgen
//	curl localhost:8080 -H 'Content-Type: application/json' -H 'X-Api-Key: a' \
//		-d '{"query": "{ users(first: 30) { name } }"}'
package main

import (
	"context"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

func main() {
	h, err := newHandler(headgate.NewMemory())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(store headgate.Store) (http.Handler, error) {
	limiter, err := headgate.NewLimiter(store, headgate.PerMinute(100))
	if err != nil {
		return nil, err
	}
	d, err := httplimit.NewDecider(limiter, httplimit.OptionsOf[context.Context, any]{
		Key: func(ctx context.Context) string {
			return "key:" + graphql.GetOperationContext(ctx).Headers.Get("X-Api-Key")
		},
		Cost: func(ctx context.Context) int64 {
			return int64(extension.GetComplexityStats(ctx).Complexity)
		},
	})
	h := handler.New(schema{})
	h.AddTransport(transport.POST{})
	h.Use(extension.FixedComplexityLimit(100)) // finds the complexity, so it comes first
	h.Use(limit{d})
	return h, err
}

type decider = httplimit.Decider[context.Context, any]

type limit struct{ *decider }

func (limit) ExtensionName() string                   { return "Limit" }
func (limit) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext decides a query before it is executed.
func (l limit) MutateOperationContext(
	ctx context.Context, _ *graphql.OperationContext,
) *gqlerror.Error {
	fields := http.Header{}
	v := l.Decide(ctx, ctx, fields)
	if v.Status == 0 {
		return nil
	}
	e := &gqlerror.Error{Message: v.Detail(), Extensions: map[string]any{"code": "RATE_LIMITED"}}
	if seconds, err := strconv.Atoi(fields.Get("Retry-After")); err == nil {
		e.Extensions["retryAfter"] = seconds
	}
	return e
}
