package redisstore_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A store of Open does not send CLIENT SETINFO, which Redis 7.2 and newer refuse the documented
// user and write to their ACL LOG, for each connection.
func TestOpenSendsNoIdentity(t *testing.T) {
	for url, want := range map[string]bool{
		"redis://h": true, "redis+cluster://h:1": true, "redis+sentinel://h:1/m": true,
		"redis+sentinel://h:1/m?identitySuffix=app": false,
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		off := false
		switch c := s.Client().(type) {
		case *redis.Client:
			off = c.Options().DisableIdentity
		case *redis.ClusterClient:
			off = c.Options().DisableIdentity
		}
		if off != want {
			t.Errorf("%s: DisableIdentity is %t; want %t", url, off, want)
		}
		_ = s.Close()
	}
	server := redistest.Start(t)
	if _, err := server.Do(t.Context(), documentedUser(t)...); err != nil {
		t.Fatal(err)
	}
	s, err := redisstore.Open("redis://headgate:secret@" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	take(t, s, headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1})
	log, err := server.Do(t.Context(), "ACL", "LOG")
	if err != nil || strings.Contains(log, "setinfo") {
		t.Errorf("ACL LOG: %v\n%s", err, log)
	}
}
