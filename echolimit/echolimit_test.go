package echolimit_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/echolimit"
	"github.com/headgate/headgate/internal/doortest"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

func start(t testing.TB, ms []doortest.Middleware) string {
	t.Helper()
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.Use(middleware.Recover())
	for _, m := range ms {
		limit, err := echolimit.New(m.Limiter,
			doortest.For(m.Options, echolimit.Key, func(*echo.Context, []headgate.Decision) error {
				return echo.NewHTTPError(http.StatusTeapot, doortest.OwnBody)
			}))
		if err != nil {
			t.Fatal(err)
		}
		e.Use(limit)
	}
	e.HTTPErrorHandler = errorHandler
	handler := func(c *echo.Context) error {
		if status, byError := doortest.Status(c.Request().URL.Path); byError {
			c.Response().Header().Set("Handled", "yes")
			return domain(status)
		}
		doortest.Handle(c.Response(), c.Request())
		return nil
	}
	e.RouteNotFound("/*", handler)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

// domain is an error of the program, whose status only its error handler knows.
type domain int

func (domain) Error() string { return "an error" }

func errorHandler(c *echo.Context, err error) {
	_, status := echo.ResolveResponseStatus(c.Response(), err)
	if d, ok := errors.AsType[domain](err); ok {
		status = int(d)
	}
	text := ""
	if status == http.StatusTeapot {
		text = doortest.OwnBody
	}
	_ = c.String(status, text)
}

func TestDoor(t *testing.T) { doortest.Run(t, start) }

// Echo's own RateLimiter decides by a store of headgate, with its fields.
func TestStore(t *testing.T) {
	l, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(2))
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.Use(middleware.RateLimiter(echolimit.NewRateLimiterStore(l)))
	e.GET("/", func(c *echo.Context) error { return c.String(http.StatusOK, "ok") })
	for i, want := range []int{200, 200, 429} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if w.Code != want || w.Header().Get("Ratelimit-Policy") != `"2/h";q=2;w=3600` ||
			(w.Header().Get("Retry-After") == "") != (want == 200) {
			t.Errorf("request %d: %d %v", i, w.Code, w.Header())
		}
	}
	old := echolimit.NewRateLimiterStore(l)
	for i := range 3 {
		if allowed, err := old.Allow("k"); allowed != (i < 2) || err != nil {
			t.Errorf("%d: %t, %v", i, allowed, err)
		}
	}
}
