package redisstore

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// batch is what one run of the script decides: calls for the same server. See batch.lua and
// lone.lua for the arguments.
type batch struct {
	calls    []*call
	set      algorithms
	names    index[string]
	limits   index[headgate.Limit]
	times    map[int]int64 // of calendars that are decided at another time, by their number
	packed   []byte        // the limits
	requests []byte
	err      error // why none was decided
	run      redisscript.Run
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch {
	b, _ := batches.Get().(*batch)
	return b
}

// finish wakes the callers, and lets b be used again, unless it has grown very large.
func (b *batch) finish() {
	for _, c := range b.calls {
		c.done <- struct{}{}
	}
	if len(b.requests) > 100*maxBatch {
		return
	}
	clear(b.calls)
	b.names.clear()
	b.limits.clear()
	clear(b.times)
	b.run.Clear()
	b.calls, b.requests, b.set, b.err = b.calls[:0], b.requests[:0], 0, nil
	batches.Put(b)
}

// What a request has, in batch.lua.
const (
	peeks = 1 << iota
	costs
	timed
	books
	joined
	forced
)

func (b *batch) add(c *call) {
	b.calls = append(b.calls, c)
	group := together(c.requests)
	for i := range c.requests {
		what := byte(0)
		if c.mode == peek {
			what |= peeks
		}
		if group && i < len(c.requests)-1 {
			what |= joined
		}
		r := &c.requests[i]
		var limit int
		if r.At.IsZero() || r.Limit.Algorithm() != headgate.AlgorithmCalendarWindow {
			limit = b.limits.of(r.Limit)
		} else {
			limit = b.calendarAt(r)
		}
		b.append(r, what, b.names.of(c.names[i]), limit)
	}
}

// calendarAt adds the calendar of r with the bounds at its time, and returns its number.
func (b *batch) calendarAt(r *headgate.Request) int {
	b.limits.all = append(b.limits.all, r.Limit)
	if b.times == nil {
		b.times = make(map[int]int64)
	}
	b.times[len(b.limits.all)] = r.At.UnixMicro()
	return len(b.limits.all)
}

// together reports whether the decisions on rs depend on each other: not those with Force.
func together(rs []headgate.Request) bool {
	n := 0
	for i := range rs {
		if !rs[i].Force || rs[i].Cost < 0 {
			n++
		}
	}
	return n > 1
}

func (b *batch) append(r *headgate.Request, what byte, name, limit int) {
	b.set |= 1 << r.Limit.Algorithm()
	if r.Forced() {
		what |= costs | forced
	} else if r.Cost != 1 {
		what |= costs
	}
	if !r.At.IsZero() {
		what |= timed
	}
	if r.MaxWait > 0 || r.Headroom > 0 || r.Start != nil { // which is to be set, or names a grant
		what |= books
	}
	if what&^(costs|forced) != 0 {
		b.set |= slowPath
	}
	b.requests = append(b.requests, what)
	p := b.requests
	p = number(p, int64(name), 3)
	p = number(p, int64(limit), 3)
	if what&costs != 0 {
		p = number(p, within(r), 7)
	}
	if what&timed != 0 {
		p = number(p, r.At.UnixMicro(), 7)
	}
	if what&books != 0 {
		last := min(r.Headroom, r.Limit.Capacity())
		if r.Cost < 0 && r.Start != nil && !r.Start.IsZero() {
			last = r.Start.UnixMicro()
		}
		p = number(p, r.MaxWait.Microseconds(), 7)
		p = number(p, last, 7)
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

const max53 = 1<<53 - 1

// within clamps the cost of r to what a double can hold. Every cost above the capacity is denied
// alike, unless it is charged, and no capacity or state reaches 2^53.
func within(r *headgate.Request) int64 {
	if r.Forced() {
		return min(r.Cost, max53+1)
	}
	return min(max(r.Cost, -max53), r.Limit.Capacity()+1)
}

// numbers are what a limit's algorithm needs besides its capacity. A calendar needs its bounds at
// now, or if that is 0 at the time of this process.
func numbers(l headgate.Limit, now int64) (a, b int64) {
	switch l.Algorithm() {
	case headgate.AlgorithmCalendarWindow:
		if now == 0 {
			now = time.Now().UnixMicro()
		}
		start, next, afterNext := l.Bounds(time.UnixMicro(now))
		first, second := next.Sub(start)/time.Second, afterNext.Sub(next)/time.Second
		return start.UnixMicro(), int64(first<<26 + second) // see calendar_window.lua
	case headgate.AlgorithmTokenBucket:
		return algorithm.Fraction(l.Refill(), l.Period().Microseconds())
	case headgate.AlgorithmSteppedTokenBucket:
		return l.Refill(), l.Period().Microseconds()
	default:
		return l.Period().Microseconds(), 0
	}
}

// prepare makes the run of the script, at a time of this process, or 0 for the server's.
func (b *batch) prepare(now int64) {
	if now != 0 {
		b.set |= slowPath
	}
	if r := b.lone(); r != nil {
		force := int64(0)
		if r.Forced() {
			force = 1
		}
		b.packed = number(number(appendLimit(b.packed[:0], r.Limit, 0), within(r), 7), force, 1)
		b.run.Prepare(scriptFor(b.set|lone), b.names.all, now, answerSize, b.packed)
		return
	}
	p := b.packed[:0]
	for i, l := range b.limits.all {
		p = appendLimit(append(p, byte(l.Algorithm())), l, b.times[i+1])
	}
	b.packed = p
	b.run.Prepare(scriptFor(b.set), b.names.all, now, b.answerSize(), b.packed, b.requests)
}

// lone returns the request of b if it is the only one and plain, so that lone.lua decides it.
func (b *batch) lone() *headgate.Request {
	if len(b.calls) > 1 || b.set&slowPath != 0 {
		return nil
	}
	if rs := b.calls[0].requests; len(rs) == 1 {
		return &rs[0]
	}
	return nil
}

// appendLimit appends the numbers of a limit, which a calendar has at now.
func appendLimit(p []byte, l headgate.Limit, now int64) []byte {
	x, y := numbers(l, now)
	return number(number(number(p, l.Capacity(), 7), x, 7), y, 7)
}

// The sizes of an answer and the clock, in batch.lua.
const answerSize, clockSize = 21, 7

func (b *batch) answerSize() int {
	size := answerSize * b.size()
	if b.set&slowPath != 0 {
		size += clockSize
	}
	return size
}

// size returns the number of requests.
func (b *batch) size() (n int) {
	for _, c := range b.calls {
		n += len(c.requests)
	}
	return n
}

// needsSlowPath reports whether the script met a state that only the slow path decides: then
// nothing was decided, and the batch has to be sent again.
func (b *batch) needsSlowPath() bool {
	if b.err == nil || !redis.HasErrorPrefix(b.err, "SLOWPATH") {
		return false
	}
	b.set |= slowPath
	return true
}

// answer gives each call what the script answered about it.
func (b *batch) answer(text []byte, err error) {
	if size := b.answerSize(); err == nil && len(text) != size {
		err = fmt.Errorf("the script returned %d bytes; want %d", len(text), size)
	}
	b.err = err
	for _, c := range b.calls {
		c.err = err
		for i := range c.requests {
			if err != nil {
				break
			}
			r := &c.requests[i]
			if c.err == nil {
				c.decisions[i], c.err = decision(r, c.names[i], text)
			}
			if r.Start != nil && c.err == nil {
				*r.Start = start(r, c.decisions[i], text[len(text)-clockSize:])
			}
			text = text[answerSize:]
		}
	}
}

// start is the start time of a grant, by the clock that the script returns at the end.
func start(r *headgate.Request, d headgate.Decision, clock []byte) time.Time {
	now := r.At
	if now.IsZero() {
		now = time.UnixMicro(numberAt(clock, 0))
	}
	return now.Truncate(time.Microsecond).Add(d.RetryAfter)
}

// What the script says instead of a wait.
const (
	never     = -1
	badState  = -2
	wrongType = -3
	noRoom    = -4
)

// decision reads the answer that text begins with. A value that looks like a state may hold numbers
// that no state has, so the answer is limited to what a decision can be.
func decision(r *headgate.Request, name string, text []byte) (headgate.Decision, error) {
	remaining, retry, reset := numberAt(text, 0), numberAt(text, 7), numberAt(text, 14)
	if r.Forced() && retry != 0 {
		remaining = min(max(remaining, -max53), 0)
	} else {
		remaining = min(max(remaining, 0), r.Limit.Capacity())
	}
	d := headgate.Decision{
		Limit:      r.Limit,
		Remaining:  remaining,
		RetryAfter: time.Duration(min(retry, max53)) * time.Microsecond,
		ResetAfter: time.Duration(min(max(reset, 0), max53)) * time.Microsecond,
	}
	switch {
	case retry == never:
		d.RetryAfter = headgate.Never
	case retry == badState, retry < noRoom:
		return headgate.Decision{}, stateError{scriptError(
			"BADSTATE the value of " + strconv.Quote(name) + " is not a state of this limit")}
	case retry == wrongType:
		return headgate.Decision{}, stateError{scriptError(
			"WRONGTYPE the value of " + strconv.Quote(name) + " is not a string")}
	case retry == noRoom:
		return headgate.Decision{}, scriptError("OOM the server is at maxmemory")
	}
	return d, nil
}

// numberAt reads the 7 bytes of text from the given place on.
func numberAt(text []byte, from int) int64 {
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

// stateError is what the script said about a value that is not a state.
type stateError struct{ scriptError }

func (stateError) Unwrap() error { return headgate.ErrBadState }

// index numbers different values from 1 on, in the order in which they came.
type index[T comparable] struct {
	all []T
	at  map[T]int // the numbers
}

// of returns the number of value. A new value gets the next one.
func (x *index[T]) of(value T) int {
	at, ok := x.at[value]
	if !ok {
		if x.at == nil {
			x.at = make(map[T]int)
		}
		x.all = append(x.all, value)
		at = len(x.all)
		x.at[value] = at
	}
	return at
}

func (x *index[T]) clear() {
	clear(x.at)
	clear(x.all)
	x.all = x.all[:0]
}
