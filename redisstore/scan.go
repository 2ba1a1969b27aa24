package redisstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// State is what a [Store] keeps for a key and a limit, as it was when it last changed.
type State struct {
	Key   string
	Limit string // the limit's ID, see headgate.Limit.ID; empty for permits

	// Algorithm is that of the limit; 0 for permits.
	Algorithm headgate.Algorithm

	// Used is what was used at the time Changed. It counts tokens, except for a token bucket: there
	// it counts equal parts of a token. Full is the capacity of a bucket, counted like Used; it is
	// 0 for all others. For permits, Used is the number of permits that have not expired.
	Used, Full int64

	// Changed is when the state was last charged, by the clock of the store. It is in the future if
	// a start time is booked, and the zero time for permits.
	Changed time.Time
}

// scanStep is how many keys a server looks at in one step.
const scanStep = 500

// Scan returns the states of the keys that match a pattern. In the pattern, * is any text, ? is any
// byte, [ab] is a or b, and a backslash quotes the next byte. It takes many short steps and blocks
// no server. Keys that change while it runs may be missed or come twice. Values that are not states
// are left out. The sequence ends after an error.
func (s *Store) Scan(ctx context.Context, match string) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if s.proxy {
			yield(State{}, &unusableError{errNoScan})
			return
		}
		servers, err := s.clients(ctx)
		if err != nil {
			yield(State{}, s.explainScan(err))
			return
		}
		for _, server := range servers {
			if !s.scanServer(ctx, server, s.pattern(match), yield) {
				return
			}
		}
	}
}

var errNoScan = errors.New("redisstore: a proxy does not list keys: use the address of each " +
	"server behind it")

func (s *Store) explainScan(err error) error {
	return redisscript.Explain("redisstore", err, advices(s.client, s.prefix, "SCAN and GET"))
}

// clients returns a client of each server that has keys of its own.
func (s *Store) clients(ctx context.Context) (all []redis.Cmdable, err error) {
	var mu sync.Mutex
	add := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		return nil
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = c.ForEachShard(ctx, add)
	default:
		all = append(all, c)
	}
	return all, err
}

// scanServer yields the states of one server, and reports whether to go on.
func (s *Store) scanServer(
	ctx context.Context, server redis.Cmdable, pattern string, yield func(State, error) bool,
) bool {
	for cursor := uint64(0); ; {
		names, next, err := server.ScanType(ctx, cursor, pattern, scanStep, "string").Result()
		var states []State
		if err == nil {
			states, err = s.read(ctx, names)
		}
		if err != nil {
			yield(State{}, s.explainScan(err))
			return false
		}
		for _, state := range states {
			if !yield(state, nil) {
				return false
			}
		}
		if next == 0 {
			return true
		}
		cursor = next
	}
}

// read returns the states of the keys called names in Redis. It leaves out what is no state, or has
// expired since.
func (s *Store) read(ctx context.Context, names []string) (states []State, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	values := make([]*redis.StringCmd, len(names))
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			values[i] = p.Get(ctx, name)
		}
		return nil
	})
	for i, name := range names {
		value, failed := values[i].Result()
		switch {
		case errors.Is(failed, redis.Nil):
			continue
		case failed != nil:
			return nil, err
		}
		if state, ok := s.decode(name, value); ok {
			states = append(states, state)
		}
	}
	return states, nil
}

// decode returns the state at name in Redis, and false if it is none.
func (s *Store) decode(name, value string) (State, bool) {
	key, id, ok := s.parseName(name)
	if !ok || value == "" {
		return State{}, false
	}
	state := State{Key: key, Limit: id}
	if id == permitsID {
		state.Limit = ""
		return state, state.decodePermits(value)
	}
	return state, !strings.HasPrefix(id, "@") && state.decodeUsed(value)
}

// The sizes of states and permits; see the Lua files.
const (
	permitSize = 23
	logHead    = 16
	logEntry   = 9
)

var stateSizes = [...]int{
	headgate.AlgorithmTokenBucket:        27,
	headgate.AlgorithmSteppedTokenBucket: 48,
	headgate.AlgorithmFixedWindow:        20,
	headgate.AlgorithmSlidingWindow:      27,
	headgate.AlgorithmCalendarWindow:     20,
}

// decodeUsed decodes the state of a limit, and returns false if it is none.
func (s *State) decodeUsed(value string) bool {
	s.Algorithm = headgate.Algorithm(value[0])
	switch {
	case s.Algorithm == headgate.AlgorithmSlidingLog:
		if len(value) < logHead || (len(value)-logHead)%logEntry != 0 {
			return false
		}
		s.Used = decodeNumber(value[8:11])
	case s.Algorithm < 1, int(s.Algorithm) >= len(stateSizes),
		len(value) != stateSizes[s.Algorithm]:
		return false
	default:
		s.Used = decodeNumber(value[8:15])
	}
	switch s.Algorithm {
	case headgate.AlgorithmTokenBucket:
		s.Full = decodeNumber(value[15:22])
	case headgate.AlgorithmSteppedTokenBucket:
		s.Full = decodeNumber(value[22:29])
	}
	s.Changed = time.UnixMicro(decodeNumber(value[1:8]))
	return true
}

// decodePermits counts the permits that have not expired, and returns false if value has none.
func (s *State) decodePermits(value string) bool {
	if len(value)%permitSize != 1 || value[0] > 1 {
		return false
	}
	now := time.Now().UnixMicro()
	for at := 1; at < len(value); at += permitSize {
		if decodeNumber(value[at+16:at+permitSize]) > now {
			s.Used++
		}
	}
	return s.Used > 0
}

// decodeNumber reads a whole number, of which the lowest byte comes first.
func decodeNumber(bytes string) (n int64) {
	for i := len(bytes) - 1; i >= 0; i-- {
		n = n<<8 | int64(bytes[i])
	}
	return n
}
