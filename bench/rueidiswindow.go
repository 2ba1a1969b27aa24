package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// rueidisWindowScript counts takes in a window that begins with the first of them: a
// counter, and beside it the end of the window in milliseconds by the caller's clock.
var rueidisWindowScript = rueidis.NewLuaScript(`
local cost, now, length = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local over = tonumber(redis.call('GET', KEYS[2]) or 0)
if over <= now then
  over = now + length
  redis.call('SET', KEYS[2], over, 'PX', length)
  redis.call('SET', KEYS[1], cost, 'PX', length)
  return {tonumber(cost), over}
end
return {redis.call('INCRBY', KEYS[1], cost), over}
`)

// rueidisWindow stands in for rueidislimiter: a fixed window of our own, of one script
// call on two keys, over the rueidis client, which pipelines the callers by itself. It
// is not that package, and its row says so.
type rueidisWindow struct {
	client rueidis.Client
	terms  Terms
}

// newRueidis is the client of every contender that uses rueidis: its defaults, but for
// a cache that nobody asks.
func newRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

func openRueidisWindow(s Setup) (Contender, error) {
	client, err := newRueidis(s.Addr)
	if err != nil {
		return nil, err
	}
	return rueidisWindow{client, s.Terms}, nil
}

func (r rueidisWindow) Take(key string) (bool, error) {
	now := time.Now()
	answer, err := rueidisWindowScript.Exec(context.Background(), r.client, []string{"{" + key + "}:count", "{" + key + "}:end"},
		[]string{"1", strconv.FormatInt(now.UnixMilli(), 10), strconv.FormatInt(r.terms.Period().Milliseconds(), 10)}).AsIntSlice()
	if err != nil {
		return false, err
	}
	if len(answer) != 2 {
		return false, fmt.Errorf("the window script answered %d numbers, want 2", len(answer))
	}
	return answer[0] <= r.terms.Burst, nil
}

// Close implements [io.Closer].
//
//nolint:unparam // the error is that of the interface
func (r rueidisWindow) Close() error {
	r.client.Close()
	return nil
}
