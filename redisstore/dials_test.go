package redisstore_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A server that hangs is noticed in some hundred milliseconds, unless the URL says otherwise, and
// one that refuses connections at once: a dial is tried once.
func TestTimeoutsOfOpen(t *testing.T) {
	timeouts := func(client redis.UniversalClient) [4]time.Duration {
		if cluster, ok := client.(*redis.ClusterClient); ok {
			o := cluster.Options()
			return [4]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout,
				time.Duration(o.DialerRetries)}
		}
		o := client.(*redis.Client).Options()
		return [4]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout,
			time.Duration(o.DialerRetries)}
	}
	const ms = time.Millisecond
	for url, want := range map[string][4]time.Duration{
		"redis://h":                                   {400 * ms, 400 * ms, 400 * ms, 1},
		"redis+cluster://a:1,b:2":                     {400 * ms, 400 * ms, 400 * ms, 1},
		"redis+sentinel://a:1/m":                      {400 * ms, 400 * ms, 400 * ms, 1},
		"redis://h?read_timeout=2s":                   {400 * ms, 2000 * ms, 2000 * ms, 1},
		"redis://h?dial_timeout=1s&write_timeout=5ms": {1000 * ms, 400 * ms, 5 * ms, 1},
		"redis+cluster://a:1?dial_timeout=3s":         {3000 * ms, 400 * ms, 400 * ms, 1},
		"redis+cluster://a:1?dialer_retries=3":        {400 * ms, 400 * ms, 400 * ms, 3},
		"redis+sentinel://a:1/m?read_timeout=7":       {400 * ms, 7000 * ms, 7000 * ms, 1},
		"redis://h?dial_timeout=0&read_timeout=100000": {-1, 100000 * time.Second,
			100000 * time.Second, 1},
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		client := s.Client()
		if got := timeouts(client); got != want {
			t.Errorf("%s: dial, read, write, and tries of a dial %d; want %d", url, got, want)
		}
		_ = s.Close()
	}
}
