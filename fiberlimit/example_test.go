package fiberlimit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fiberlimit"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/valyala/fasthttp"
)

func Example() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(2))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := fiberlimit.New(limiter, fiberlimit.Options{
		Key: fiberlimit.Key(httplimit.Header("X-Api-Key")),
	})
	if err != nil {
		log.Fatal(err)
	}
	app := fiber.New()
	app.Use(limit)
	app.Get("/", func(c fiber.Ctx) error { return c.SendString("hello") })

	for range 3 {
		response, err := app.Test(httptest.NewRequestWithContext(context.Background(),
			http.MethodGet, "/", nil))
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		fmt.Println(response.StatusCode, response.Header["Ratelimit"], string(body))
	}
	// Output:
	// 200 ["2/m";r=1;t=30] hello
	// 200 ["2/m";r=0;t=30] hello
	// 429 ["2/m";r=0;t=30] {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"The limit 2/m is exceeded. Retry in 30 s.","violated-policies":["2/m"]}
}

// The user that an earlier middleware found is the key, and a route has a cost of its own.
func ExampleNew_user() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(10))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := fiberlimit.New(limiter, fiberlimit.Options{
		Key: func(c fiber.Ctx) string { return "user:" + fiber.Locals[string](c, "user") },
		Cost: func(c fiber.Ctx) int64 {
			if c.Path() == "/export" {
				return 10
			}
			return 1
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	app := fiber.New()
	authenticate := func(c fiber.Ctx) error {
		c.Locals("user", c.Query("user"))
		return c.Next()
	}
	app.Use(authenticate, limit)
	app.Get("/export", func(c fiber.Ctx) error { return c.SendString("a file") })

	for _, user := range []string{"ada", "bob", "ada"} {
		response, err := app.Test(httptest.NewRequestWithContext(context.Background(),
			http.MethodGet, "/export?user="+user, nil))
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		fmt.Println(user, response.StatusCode)
	}
	// Output:
	// ada 200
	// bob 200
	// ada 429
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../docs/frameworks.md", "fiber", "example_test.go")
}

// BenchmarkAllowed measures a request that is allowed, with a limit and without.
func BenchmarkAllowed(b *testing.B) {
	l, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(1_000_000_000))
	if err != nil {
		b.Fatal(err)
	}
	limit, err := fiberlimit.New(l, fiberlimit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, middleware := range map[string]fiber.Handler{"limit": limit, "none": fiber.Ctx.Next} {
		b.Run(name, func(b *testing.B) {
			app := fiber.New()
			app.Use(middleware)
			app.Get("/", func(c fiber.Ctx) error { return c.SendStatus(http.StatusOK) })
			handler, r := app.Handler(), &fasthttp.RequestCtx{}
			r.Request.Header.SetMethod(http.MethodGet)
			r.Request.SetRequestURI("/")
			b.ReportAllocs()
			for b.Loop() {
				r.Response.Reset()
				handler(r)
			}
		})
	}
}
