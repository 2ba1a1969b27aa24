package serve

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// describe asks about descriptors of a domain, each of one entry.
func (s *server) describe(t *testing.T, domain string, pairs ...string) {
	t.Helper()
	request := envoy.Request{Domain: domain}
	for i := 0; i < len(pairs); i += 2 {
		entry := envoy.Entry{Key: pairs[i], Value: pairs[i+1]}
		request.Descriptors = append(request.Descriptors, envoy.Descriptor{Entries: []envoy.Entry{entry}})
	}
	if err := (decider{s, s.limiter}).Decide(t.Context(), &request, new(envoy.Response)); err != nil {
		t.Fatal(err)
	}
}

const userDomain = "domain: edge\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 5}}]\n"

// Descriptors that nothing limits are logged once a minute, and decisions in words.
func TestEnvoyLog(t *testing.T) {
	var log buffer
	s := newTestServer(t, userDomain, &log)
	s.describe(t, "edge", "user", "a")
	if log.String() != "" {
		t.Errorf("logged: %s", log.String())
	}
	for range 3 {
		s.describe(t, "edge", "user", "a", "usr", "b\n\xff"+strings.Repeat("c", 2000))
		s.describe(t, "egde", "user", "a")
	}
	const once = "so it is not limited; at most one a minute is logged"
	for _, want := range []string{
		`"no limit matches a descriptor, ` + once + `" domain=edge descriptor="usr=b\n\xffccc`,
		`"no file has the domain of a descriptor, ` + once + `" domain=egde descriptor="user=a"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("want %s in\n%s", want, log.String())
		}
	}
	if text := log.String(); strings.Count(text, once) != 2 || len(text) > 2000 {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}
	s.o.LogDecisions = 1
	s.describe(t, "edge", "user", "a", "usr", "b")
	want := `msg=decision domain=edge descriptors="user=a, usr=b" allowed=true limits="5 per HOUR: 0 left, none"`
	if !strings.Contains(log.String(), want) {
		t.Errorf("want %s in\n%s", want, log.String())
	}
}

// With hashed keys, the values of descriptors are not logged.
func TestEnvoyLogWithoutValues(t *testing.T) {
	var log buffer
	s := newTestServer(t, "key_secret: 0123456789abcdef\nstore: redis://127.0.0.1:1\n", &log)
	s.describe(t, "egde", "user", "somebody")
	if text := log.String(); !strings.Contains(text, "domain=egde descriptor=user\n") {
		t.Errorf("logged:\n%s", text)
	}
}

// Clients of the gRPC listener that speak another protocol are logged, each mistake once a minute.
func TestRefusedClients(t *testing.T) {
	var log buffer
	s := newTestServer(t, userDomain, &log)
	client := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9}
	for range 3 {
		s.refused(client, "it speaks HTTP/1", nil)
		s.refused(client, "the handshake failed", errors.New("why"))
	}
	for _, want := range []string{
		`client=192.0.2.1:9 mistake="it speaks HTTP/1"` + "\n", `mistake="the handshake failed" error=why` + "\n",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("want one %s in\n%s", want, log.String())
		}
	}
}

func TestOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o onceAMinute
		for i, want := range []bool{true, false, true, false} {
			if got := o.due("a"); got != want {
				t.Errorf("%d: %t", i, got)
			}
			if o.due("b") != (i == 0 || i == 2) {
				t.Errorf("%d: another kind", i)
			}
			time.Sleep(59 * time.Second)
		}
	})
}
