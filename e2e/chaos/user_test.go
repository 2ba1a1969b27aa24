package chaos

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// leastRights is the user of docs/redis.md.
const leastRights = "ACL SETUSER headgate on >secret ~hg:* &hg:* +evalsha +eval +get +mget +set +del +time +publish +subscribe +unsubscribe +ping"

// userFaults befall connections of a user with a password, or a certificate.
func userFaults() []fault {
	return []fault{
		{name: "least rights, SCRIPT FLUSH", build: least, quiet: true},
		{name: "passwords change", build: rotation, quiet: true},
		{name: "TLS with certificates, CLIENT KILL", build: encrypted, sees: []string{"EOF"}},
	}
}

func startWithUser(t *testing.T) *redistest.Server {
	t.Helper()
	s := redistest.Start(t)
	do(t, s, strings.Fields(leastRights)...)
	return s
}

func least(t *testing.T) *scene {
	s := startWithUser(t)
	return &scene{
		open:   openURL(t, "redis://headgate:secret@"+s.Addr),
		inject: func(ctx context.Context) { every(ctx, 100*time.Millisecond, func() { do(t, s, "SCRIPT", "FLUSH") }) },
		heal:   func() {},
		felt:   answers(t, "NOSCRIPT", s),
	}
}

// rotation gives the user a new password again and again, and takes the old one away
// when nobody comes with it any more. Connections live shortly, so that they need it.
func rotation(t *testing.T) *scene {
	s := startWithUser(t)
	var current atomic.Int64
	password := func(i int64) string { return "secret" + strconv.FormatInt(i, 10) }
	renew := func() {
		i := current.Load() + 1
		do(t, s, "ACL", "SETUSER", "headgate", ">"+password(i))
		current.Store(i)
		if i > 3 {
			do(t, s, "ACL", "SETUSER", "headgate", "<"+password(i-3))
		}
	}
	renew()
	return &scene{
		open: openClient(t, redis.Options{
			Addr: s.Addr, ConnMaxLifetime: 200 * time.Millisecond,
			CredentialsProvider: func() (string, string) { return "headgate", password(current.Load()) },
		}),
		inject: func(ctx context.Context) { every(ctx, 200*time.Millisecond, renew) },
		heal:   func() { renew(); renew() },
		felt: func() {
			if n := current.Load(); n < 5 {
				t.Errorf("%d passwords", n)
			}
		},
	}
}

// encrypted cuts connections of clients with certificates, again and again.
func encrypted(t *testing.T) *scene {
	s, config := redistest.StartTLS(t)
	return &scene{
		open: openClient(t, redis.Options{Addr: s.Addr, TLSConfig: config}),
		inject: func(ctx context.Context) {
			every(ctx, 50*time.Millisecond, func() { do(t, s, "CLIENT", "KILL", "TYPE", "normal") })
		},
		heal: func() {},
	}
}
