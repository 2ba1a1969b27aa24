package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// rueidisWindowScript counts in a window that begins with the first take: a
// counter beside a key that says when the window ends.
var rueidisWindowScript = rueidis.NewLuaScript(`
local ends, now = tonumber(redis.call('GET', KEYS[2])), tonumber(ARGV[3])
if ends == nil or ends < now then
  ends = tonumber(ARGV[2])
  redis.call('SET', KEYS[1], 0, 'PXAT', ends + 1000)
  redis.call('SET', KEYS[2], ends, 'PXAT', ends + 1000)
end
return {redis.call('INCRBY', KEYS[1], ARGV[1]), ends}
`)

// rueidisWindow stands in for rueidislimiter: our own fixed window with the
// commands of that package, over the rueidis client, which pipelines the
// callers by itself. It is not that package, and its row says so.
type rueidisWindow struct {
	client rueidis.Client
	terms  Terms
}

func openRueidisWindow(s Setup) (Contender, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	return rueidisWindow{client, s.Terms}, nil
}

func (r rueidisWindow) Take(key string) (bool, error) {
	now := time.Now()
	counter := "window:{" + key + "}"
	answer, err := rueidisWindowScript.Exec(context.Background(), r.client, []string{counter, counter + ":ex"},
		[]string{"1", strconv.FormatInt(now.Add(r.terms.Period()).UnixMilli(), 10), strconv.FormatInt(now.UnixMilli(), 10)}).AsIntSlice()
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
