package redisstore_test

import (
	"testing"

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
}
