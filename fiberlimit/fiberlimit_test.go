package fiberlimit_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v3"
	recoverer "github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fiberlimit"
	"github.com/headgate/headgate/internal/doortest"
)

// listen serves app on loopback and returns its URL.
func listen(t testing.TB, app *fiber.App) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // for which Shutdown would wait
		_ = app.Shutdown()
	})
	return "http://" + listener.Addr().String()
}

func start(t testing.TB, ms []doortest.Middleware) string {
	t.Helper()
	app := fiber.New(fiber.Config{RequestMethods: append(fiber.DefaultMethods, "INVENTED")})
	app.Use(recoverer.New())
	for _, m := range ms {
		limit, err := fiberlimit.New(m.Limiter,
			doortest.For(m.Options, fiberlimit.Key, func(fiber.Ctx, []headgate.Decision) error {
				return fiber.NewError(http.StatusTeapot, doortest.OwnBody)
			}))
		if err != nil {
			t.Fatal(err)
		}
		app.Use(limit)
	}
	app.Use(func(c fiber.Ctx) error {
		c.Set("Handled", "yes")
		switch c.Path() {
		case "/panic":
			panic("handler")
		case "/nothing":
			return nil
		}
		status, byError := doortest.Status(c.Path())
		if byError {
			return fiber.NewError(status, "an error")
		}
		return c.Status(status).SendString("ok")
	})
	return listen(t, app)
}

func TestDoor(t *testing.T) { doortest.Run(t, start) }

// A key outlives its request, although Fiber uses the memory of its texts again.
func TestKeysAreCopies(t *testing.T) {
	var mu sync.Mutex
	var keys []string
	l, err := headgate.NewLimiterFunc(headgate.NewMemory(),
		func(_ context.Context, key string) ([]headgate.Limit, error) {
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, key)
			return nil, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	limit, err := fiberlimit.New(l,
		fiberlimit.Options{Key: func(c fiber.Ctx) string { return c.Get("X-Api-Key") }})
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New()
	app.Use(limit)
	url := listen(t, app)
	for i := range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", strings.Repeat(string(rune('a'+i)), 10))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	for i, key := range keys {
		if key != strings.Repeat(string(rune('a'+i)), 10) {
			t.Errorf("key %d is %q now", i, key)
		}
	}
}
