package redisstore

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// batch is what one call of the script decides: asks of the same server. See take.lua for
// its arguments.
type batch struct {
	asks     []*ask
	set      algorithms
	names    places[string]
	limits   places[headgate.Limit]
	requests []byte
	err      error // why none was decided
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch {
	b, _ := batches.Get().(*batch)
	return b
}

// tell lets the callers go, and b be used again, unless it has grown very large.
func (b *batch) tell() {
	for _, a := range b.asks {
		a.done <- struct{}{}
	}
	if len(b.requests) > 100*maxBatch {
		return
	}
	clear(b.asks)
	b.names.clear()
	b.limits.clear()
	b.asks, b.requests, b.set, b.err = b.asks[:0], b.requests[:0], 0, nil
	batches.Put(b)
}

// What a request has, in prelude.lua.
const (
	peeks = 1 << iota
	costs
	timed
	books
	joined
)

// add puts the requests of a behind those that are there.
func (b *batch) add(a *ask) {
	b.asks = append(b.asks, a)
	for i := range a.requests {
		what := byte(0)
		if a.how == looksOn {
			what |= peeks
		}
		if i < len(a.requests)-1 {
			what |= joined
		}
		b.append(&a.requests[i], what, b.names.of(a.names[i]), b.limits.of(a.requests[i].Limit))
	}
}

// append writes one request.
func (b *batch) append(r *headgate.Request, what byte, name, limit int) {
	b.set |= 1 << r.Limit.Algorithm()
	if r.Cost != 1 {
		what |= costs
	}
	if !r.At.IsZero() {
		what |= timed
	}
	cancel := r.Cost < 0 && r.Start != nil && !r.Start.IsZero()
	if r.MaxWait > 0 || cancel {
		what |= books
	}
	if what&^costs != 0 {
		b.set |= slowPath
	}
	p := append(b.requests, what)
	p = number(p, int64(name), 3)
	p = number(p, int64(limit), 3)
	if what&costs != 0 {
		p = number(p, within(r.Cost, r.Limit), 7)
	}
	if what&timed != 0 {
		p = number(p, r.At.UnixMicro(), 7)
	}
	if what&books != 0 {
		start := int64(0)
		if cancel {
			start = r.Start.UnixMicro()
		}
		p = number(p, r.MaxWait.Microseconds(), 7)
		p = number(p, start, 7)
	}
	b.requests = p
}

// number appends the size lowest bytes of n, the lowest first.
func number(p []byte, n int64, size int) []byte {
	for range size {
		p = append(p, byte(n))
		n >>= 8
	}
	return p
}

// call is that of the script for b, at a time of its caller's or 0.
func (b *batch) call(now int64) redisscript.Call {
	limits := make([]byte, 0, limitSize*len(b.limits.all))
	for _, l := range b.limits.all {
		x, y := numbers(l)
		limits = append(limits, byte(l.Algorithm()))
		limits = number(number(number(limits, l.Capacity(), 7), x, 7), y, 7)
	}
	return redisscript.Call{Script: scriptFor(b.set), Keys: b.names.all, Args: []any{now, limits, b.requests}}
}

// The sizes of a limit, an answer and the clock; see prelude.lua.
const limitSize, answerSize, clockSize = 22, 21, 7

// needsSlowPath reports whether the script met a state that only the slow path decides: then
// nothing was decided, and the batch has to be sent again.
func (b *batch) needsSlowPath(err error) bool {
	if !redis.HasErrorPrefix(err, "SLOWPATH") {
		return false
	}
	b.set |= slowPath
	return true
}

// answer gives each ask what the script said about it.
func (b *batch) answer(text string, err error) {
	size := 0
	for _, a := range b.asks {
		size += answerSize * len(a.requests)
	}
	if b.set&slowPath != 0 {
		size += clockSize
	}
	if err == nil && len(text) != size {
		err = fmt.Errorf("the script returned %d bytes; want %d", len(text), size)
	}
	b.err = err
	for _, a := range b.asks {
		a.err = err
		for i := range a.requests {
			if err != nil {
				break
			}
			if a.err == nil {
				a.decisions[i], a.err = decision(a.requests[i].Limit, a.names[i], text)
			}
			if r := &a.requests[i]; r.Start != nil && r.MaxWait > 0 && a.err == nil {
				*r.Start = start(r, a.decisions[i], text[len(text)-clockSize:])
			}
			text = text[answerSize:]
		}
	}
}

// start is the start time of a grant. The script returns its clock at the end.
func start(r *headgate.Request, d headgate.Decision, text string) time.Time {
	now := r.At
	if now.IsZero() {
		now = time.UnixMicro(numberAt(text, 0))
	}
	return now.Truncate(time.Microsecond).Add(d.RetryAfter)
}

// What the script says instead of a wait.
const (
	never     = -1
	badState  = -2
	wrongType = -3
)

// decision reads the answer that text begins with. Of a value that looks like a state, with numbers
// that none has, it may tell what no limit says.
func decision(l headgate.Limit, name, text string) (headgate.Decision, error) {
	remaining, retry, reset := numberAt(text, 0), numberAt(text, 7), numberAt(text, 14)
	remaining, reset = min(max(remaining, 0), l.Capacity()), max(reset, 0)
	d := headgate.Decision{Limit: l, Remaining: remaining, RetryAfter: time.Duration(retry) * time.Microsecond, ResetAfter: time.Duration(reset) * time.Microsecond}
	switch {
	case retry == never:
		d.RetryAfter = headgate.Never
	case retry == badState, retry < wrongType:
		return headgate.Decision{}, scriptError("BADSTATE the value of " + strconv.Quote(name) + " is not a state of this limit")
	case retry == wrongType:
		return headgate.Decision{}, scriptError("WRONGTYPE the value of " + strconv.Quote(name) + " is not a string")
	}
	return d, nil
}

// numberAt reads the 7 bytes of text from the given place on.
func numberAt(text string, from int) int64 {
	var n uint64
	for i := range 7 {
		n |= uint64(text[from+i]) << (8 * (i + 1))
	}
	return int64(n) >> 8 // with its sign
}

// scriptError is what the script said about one request.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (scriptError) RedisError() {}
