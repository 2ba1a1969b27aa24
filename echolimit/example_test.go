package echolimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/echolimit"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/labstack/echo/v5"
)

func Example() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(2))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := echolimit.New(limiter, echolimit.Options{
		Key: echolimit.Key(httplimit.Header("X-Api-Key")),
	})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.Use(limit)
	e.GET("/", func(c *echo.Context) error { return c.String(http.StatusOK, "hello") })

	for range 3 {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/",
			nil))
		fmt.Println(w.Code, w.Header()["Ratelimit"], w.Body)
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
	limit, err := echolimit.New(limiter, echolimit.Options{
		Key: func(c *echo.Context) string { return fmt.Sprint("user:", c.Get("user")) },
		Cost: func(c *echo.Context) int64 {
			if c.Path() == "/export" {
				return 10
			}
			return 1
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	authenticate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set("user", c.QueryParam("user"))
			return next(c)
		}
	}
	e.Use(authenticate, limit)
	e.GET("/export", func(c *echo.Context) error { return c.String(http.StatusOK, "a file") })

	for _, user := range []string{"ada", "bob", "ada"} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet,
			"/export?user="+user, nil))
		fmt.Println(user, w.Code)
	}
	// Output:
	// ada 200
	// bob 200
	// ada 429
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../docs/frameworks.md", "echo", "example_test.go")
}

// bare is a response that allocates nothing.
type bare struct{ header http.Header }

func (b *bare) Header() http.Header         { return b.header }
func (b *bare) Write(p []byte) (int, error) { return len(p), nil }
func (b *bare) WriteHeader(int)             {}

// BenchmarkAllowed measures a request that is allowed, with a limit and without.
func BenchmarkAllowed(b *testing.B) {
	l, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(1_000_000_000))
	if err != nil {
		b.Fatal(err)
	}
	limit, err := echolimit.New(l, echolimit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	none := func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	for name, middleware := range map[string]echo.MiddlewareFunc{"limit": limit, "none": none} {
		b.Run(name, func(b *testing.B) {
			e := echo.New()
			e.Use(middleware)
			e.GET("/", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })
			w, r := &bare{http.Header{}},
				httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				e.ServeHTTP(w, r)
			}
		})
	}
}
