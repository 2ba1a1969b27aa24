package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/serve"
)

// operatorToken is the token of the servers of these tests.
const operatorToken = "of-the-operator"

// consoleRules is a rules file. What has a burst of 5 is soon denied.
const consoleRules = `
api: {tokens: [of-the-operator]}
rules:
  - {name: api, key: ip, limits: [6/h]}
  - {name: wide, key: ip, limits: [1000000/s]}
  - {name: next, key: ip, limits: [3/h], mode: shadow}
  - {name: agents, key: [header:User-Agent], any_key: true, limits: [1/h]}
domains:
  - domain: edge
    descriptors:
      - {key: remote_address, rate_limit: {unit: hour, requests_per_unit: 5}}
`

// operated is a running headgate serve.
type operated struct {
	t         *testing.T
	url, file string
	stop      func()
}

// addressed passes on the address of the HTTP listener.
type addressed struct {
	slog.Handler

	http chan<- string
}

func (a addressed) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "listening" {
		return nil
	}
	attributes := map[string]string{}
	r.Attrs(func(at slog.Attr) bool {
		attributes[at.Key] = at.Value.String()
		return true
	})
	if attributes["listener"] == "http" {
		a.http <- attributes["address"]
	}
	return nil
}

// operate starts a server with consoleRules. It ends with the test, or with stop.
func operate(t *testing.T, change ...func(*serve.Options)) *operated {
	t.Helper()
	s := &operated{t: t, file: filepath.Join(t.TempDir(), "rules.yaml")}
	s.write(consoleRules)
	on := make(chan string, 1)
	o := serve.Options{
		Files: []string{s.file}, Store: "memory:", HTTP: "127.0.0.1:0",
		GRPC: serve.Off, Debug: serve.Off, Grace: time.Second, Version: "test",
		Connections: serve.DefaultConnections,
		Log:         slog.New(addressed{slog.NewTextHandler(t.Output(), nil), on}),
		Out:         &bytes.Buffer{},
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- serve.Run(ctx, o) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(func() { s.stop() })
	select {
	case address := <-on:
		s.url = "http://" + address
	case err := <-ended:
		t.Fatal(err)
	}
	return s
}

func (s *operated) write(rules string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte(rules), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// take sends a request of key under rule, and reports whether it was allowed.
func (s *operated) take(rule, key string) bool {
	s.t.Helper()
	allowed, err := s.tryTake(s.t.Context(), rule, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return allowed
}

func (s *operated) tryTake(ctx context.Context, rule, key string) (allowed bool, err error) {
	body, err := json.Marshal(map[string]string{"rule": rule, "key": key})
	if err != nil {
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/take", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	var decision struct {
		Allowed *bool `json:"allowed"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&decision); err != nil {
		return false, err
	}
	if decision.Allowed == nil {
		return false, errors.New("no decision: " + answer.Status)
	}
	return *decision.Allowed, nil
}

// flood sends requests of key under rule until the test ends.
func (s *operated) flood(rule, key string, each time.Duration) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() {
		ticker := time.NewTicker(each)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-ticker.C:
				if _, err := s.tryTake(ctx, rule, key); err != nil && ctx.Err() == nil {
					ended <- err
					return
				}
			}
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// withToken gives the page the token of the operator, as if it had been entered before.
func withToken() action {
	return atStart(`sessionStorage.setItem("headgate-console-token", "` + operatorToken + `")`)
}

// console opens the console of s.
func (s *operated) console(before ...action) *page {
	s.t.Helper()
	return openAt(s.t, s.url, "/console/", before...)
}

// at lets a server listen on an address that was free.
func at(address string) func(*serve.Options) {
	return func(o *serve.Options) { o.HTTP = address }
}
