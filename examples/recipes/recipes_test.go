// Package recipes has the programs of docs/recipes.md.
package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/headgate/headgate/redisstore"
)

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../docs/recipes.md", "recipes", "recipes_test.go")
}

// open returns an error for a Redis that is not there.
func open(ctx context.Context, url string) error {
	store, err := redisstore.Open(url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := store.Ping(ctx); err != nil {
		return err
	}
	return store.Close()
}

func TestAWrongURLFailsAtTheStart(t *testing.T) {
	if err := open(t.Context(), "redis://"+redistest.Start(t).Addr); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"redis://127.0.0.1:1", "redis+cluster://" + redistest.Start(t).Addr} {
		if err := open(t.Context(), url); err == nil {
			t.Errorf("%s is accepted", url)
		}
	}
}

// statuses sends a request with each body to h, and returns the statuses.
func statuses(t *testing.T, h http.Handler, path string, bodies ...string) (got []int) {
	t.Helper()
	for _, body := range bodies {
		r := httptest.NewRequestWithContext(
			t.Context(), http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("X-Api-Key", body)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got = append(got, w.Code)
	}
	return got
}

func TestKeyOfABody(t *testing.T) {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.SlidingLog(1, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Options{
		Key: func(r *http.Request) string {
			body, _ := io.ReadAll(http.MaxBytesReader(nil, r.Body, 4096))
			r.Body = io.NopCloser(bytes.NewReader(body)) // for the handler
			var login struct {
				Name string `json:"name"`
			}
			_ = json.Unmarshal(body, &login)
			return "login:" + strings.ToLower(login.Name)
		},
		Skip: func(r *http.Request) bool { return r.URL.Path == "/healthz" },
	})
	if err != nil {
		t.Fatal(err)
	}
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(body), "name") {
			t.Errorf("the handler got %q, %v", body, err)
		}
	}))
	bodies := []string{`{"name":"Ann"}`, `{"name":"bob"}`, `{"name":"ann"}`}
	if got := statuses(t, h, "/login", bodies...); !slices.Equal(got, []int{200, 200, 429}) {
		t.Errorf("%d", got)
	}
	if got := statuses(t, h, "/healthz", bodies...); !slices.Equal(got, []int{200, 200, 200}) {
		t.Errorf("%d", got)
	}
}

func read(
	ctx context.Context, limiter *headgate.Limiter, messages iter.Seq[string], handle func(string),
) error {
	for message := range messages {
		if d, err := limiter.Allow(ctx, "user:42"); err == nil && !d.Allowed() {
			return fmt.Errorf("slow down: retry in %s", d.RetryAfter)
		}
		handle(message)
	}
	return nil
}

func TestMessages(t *testing.T) {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(2))
	if err != nil {
		t.Fatal(err)
	}
	handled := 0
	messages := slices.Values([]string{"a", "b", "c"})
	err = read(t.Context(), limiter, messages, func(string) { handled++ })
	if err == nil || handled != 2 {
		t.Errorf("%d were handled: %v", handled, err)
	}
}
