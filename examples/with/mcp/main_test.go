package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/headgate/headgate/redisstore"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer sends a token with each request, which is the name of its user.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// serve serves the example with a limit of 2 calls an hour, and returns its URL.
func serve(t *testing.T, store headgate.Store, around func(http.Handler) http.Handler) string {
	t.Helper()
	h, err := newHandler(store, headgate.PerHour(2))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(around(h))
	t.Cleanup(server.Close)
	return server.URL
}

// calls opens a session, calls the tool n times and returns the answers, "" if it was allowed.
func calls(t *testing.T, url, user string, n int) (answers []string) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: bearer(user)}, DisableStandaloneSSE: true,
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for range n {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		answer := ""
		if r.IsError {
			answer = r.Content[0].(*mcp.TextContent).Text
		}
		answers = append(answers, answer)
	}
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Error("what is not a call is not limited: ", err)
	}
	return answers
}

func expect(t *testing.T, what string, answers []string, allowed int) {
	t.Helper()
	for i, answer := range answers {
		if i < allowed != (answer == "") ||
			i >= allowed && !strings.HasPrefix(answer, "The limit 2/h is exceeded. Retry in ") {
			t.Errorf("%s: answer %d of %d allowed ones: %q", what, i+1, allowed, answer)
		}
	}
}

func TestSessions(t *testing.T) {
	url := serve(t, headgate.NewMemory(), func(h http.Handler) http.Handler { return h })
	expect(t, "a session", calls(t, url, "", 4), 2)
	expect(t, "another session", calls(t, url, "", 4), 2)
}

func TestUsers(t *testing.T) {
	url := serve(t, headgate.NewMemory(), auth.RequireBearerToken(verify, nil))
	expect(t, "alice", calls(t, url, "alice", 1), 1)
	expect(t, "alice in another session", calls(t, url, "alice", 2), 1)
	expect(t, "bob", calls(t, url, "bob", 3), 2)
}

// Calls pass while the store is unavailable. Nothing listens on port 1.
func TestUnavailable(t *testing.T) {
	store, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, store, func(h http.Handler) http.Handler { return h })
	expect(t, "without a store", calls(t, url, "", 3), 3)
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../../docs/mcp.md", "mcp", "main.go")
}
