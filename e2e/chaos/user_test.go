package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// userFaults befall connections of a user with a password, or a certificate.
func userFaults() []fault {
	return []fault{
		{name: "least rights, SCRIPT FLUSH", build: least, quiet: true},
		{name: "passwords change", build: rotation, quiet: true},
		{name: "TLS with certificates, CLIENT KILL", build: encrypted, sees: []string{"EOF"}},
	}
}

// The name and the password of the user that docs/redis.md makes.
const user, password = "headgate", "secret"

// makeUser makes the user of docs/redis.md, with the rights of a Cluster's or without.
func makeUser(t *testing.T, s *redistest.Server, cluster bool) {
	t.Helper()
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "ACL SETUSER "+user) && strings.Contains(line, " +") && (cluster || !strings.Contains(line, "+cluster")) {
			do(t, s, strings.Fields(line)...)
			made++
		}
	}
	if made == 0 {
		t.Fatal("docs/redis.md names no user")
	}
}

func least(t *testing.T) *scene {
	s := redistest.Start(t)
	makeUser(t, s, false)
	return &scene{
		open:   openURL(t, "redis://"+user+":"+password+"@"+s.Addr),
		inject: func(over <-chan struct{}) { every(over, 100*time.Millisecond, func() { do(t, s, "SCRIPT", "FLUSH") }) },
		heal:   func() {},
		felt:   answers(t, "NOSCRIPT", s),
	}
}

// rotation gives the user a new password again and again, and removes the old one when
// no program uses it any more. Connections are short-lived, so that they need the new one.
func rotation(t *testing.T) *scene {
	s := redistest.Start(t)
	makeUser(t, s, false)
	var current atomic.Int64
	version := func(i int64) string { return password + strconv.FormatInt(i, 10) }
	renew := func() {
		i := current.Load() + 1
		do(t, s, "ACL", "SETUSER", user, ">"+version(i))
		current.Store(i)
		if i > 3 {
			do(t, s, "ACL", "SETUSER", user, "<"+version(i-3))
		}
	}
	renew()
	return &scene{
		open: openClient(t, redis.Options{
			Addr: s.Addr, ConnMaxLifetime: 200 * time.Millisecond,
			CredentialsProvider: func() (string, string) { return user, version(current.Load()) },
		}),
		inject: func(over <-chan struct{}) { every(over, 200*time.Millisecond, renew) },
		heal:   func() { renew(); renew() },
		felt: func() error {
			if n := current.Load(); n < 5 {
				return fmt.Errorf("%d passwords", n)
			}
			return nil
		},
	}
}

// encrypted cuts connections of clients with certificates, again and again.
func encrypted(t *testing.T) *scene {
	s, config := redistest.StartTLS(t)
	return &scene{
		open: openClient(t, redis.Options{Addr: s.Addr, TLSConfig: config}),
		inject: func(over <-chan struct{}) {
			every(over, 250*time.Millisecond, func() { do(t, s, "CLIENT", "KILL", "TYPE", "normal") })
		},
		heal: func() {},
	}
}
