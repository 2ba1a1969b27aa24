package ginlimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/ginlimit"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/snippets"
)

func Example() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(2))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := ginlimit.New(limiter, ginlimit.Options{
		Key: ginlimit.Key(httplimit.Header("X-Api-Key")),
	})
	if err != nil {
		log.Fatal(err)
	}
	engine := gin.New()
	engine.Use(limit)
	engine.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello") })

	for range 3 {
		w := httptest.NewRecorder()
		engine.ServeHTTP(w,
			httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil))
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
	limit, err := ginlimit.New(limiter, ginlimit.Options{
		Key: func(c *gin.Context) string { return "user:" + c.GetString("user") },
		Cost: func(c *gin.Context) int64 {
			if c.FullPath() == "/export" {
				return 10
			}
			return 1
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	engine := gin.New()
	engine.Use(func(c *gin.Context) { c.Set("user", c.Query("user")) }, limit)
	engine.GET("/export", func(c *gin.Context) { c.String(http.StatusOK, "a file") })

	for _, user := range []string{"ada", "bob", "ada"} {
		w := httptest.NewRecorder()
		engine.ServeHTTP(w,
			httptest.NewRequestWithContext(context.Background(), http.MethodGet,
				"/export?user="+user, nil))
		fmt.Println(user, w.Code)
	}
	// Output:
	// ada 200
	// bob 200
	// ada 429
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../docs/frameworks.md", "gin",
		"example_test.go")
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
	limit, err := ginlimit.New(l, ginlimit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, middleware := range map[string]gin.HandlerFunc{"limit": limit,
		"none": func(*gin.Context) {}} {
		b.Run(name, func(b *testing.B) {
			engine := gin.New()
			engine.Use(middleware)
			engine.GET("/", func(c *gin.Context) { c.Status(http.StatusOK) })
			w, r := &bare{http.Header{}},
				httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				engine.ServeHTTP(w, r)
			}
		})
	}
}
