package ratelimiter_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/ratelimiter"
	"github.com/redis/go-redis/v9"
)

// life is how long a key of capacity 10, one token a second, lives after a grant.
const life = 2*10*time.Second + time.Minute

// around says whether an expiry was set to want a moment ago: the test may have
// taken ten seconds.
func around(left, want time.Duration) bool { return left <= want && left > want-10*time.Second }

// TestExpiry: set by the first grant, extended by each, mended if it is missing or short,
// and otherwise untouched by a denial.
func TestExpiry(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{})
	left := func() time.Duration { return client.PTTL(t.Context(), key).Val() }
	at := client.Time(t.Context()).Val()
	takeAt(t, limiter, key, at)
	if !around(left(), life) {
		t.Errorf("a new key lives for %s; want %s", left(), life)
	}
	client.PExpire(t.Context(), key, time.Second)
	takeAt(t, limiter, key, at)
	if !around(left(), life) {
		t.Errorf("a grant extends to %s; want %s", left(), life)
	}
	client.Persist(t.Context(), key)
	for range 8 {
		takeAt(t, limiter, key, at)
	}
	for _, c := range []struct {
		name      string
		had, want time.Duration
	}{
		{"without expiry", 0, life},
		{"about to end", time.Second, life},
		{"a little longer than half", life/2 + 5*time.Second, life/2 + 5*time.Second},
		{"long", time.Hour, time.Hour},
	} {
		client.Persist(t.Context(), key)
		if c.had > 0 {
			client.PExpire(t.Context(), key, c.had)
		}
		if v := takeAt(t, limiter, key, at); v.Allowed {
			t.Fatal("an eleventh of ten")
		}
		if !around(left(), c.want) {
			t.Errorf("a denial of a key %s leaves %s; want %s", c.name, left(), c.want)
		}
	}
}

// TestDenialWritesNothing counts what the server changes: a denial is no change, and
// neither is it one when some of the next token has arrived.
func TestDenialWritesNothing(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 1, RefillRate: 0.1, RefillInterval: time.Second})
	at := time.Unix(1_700_000_000, 0)
	takeAt(t, limiter, key, at)
	before := client.HGetAll(t.Context(), key).Val()
	client.PExpire(t.Context(), key, time.Hour)
	for i := range 10 {
		if v := takeAt(t, limiter, key, at.Add(time.Duration(i)*time.Second)); v.Allowed {
			t.Fatalf("allowed after %d s", i)
		}
	}
	if after := client.HGetAll(t.Context(), key).Val(); !maps.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	if left := client.PTTL(t.Context(), key).Val(); !around(left, time.Hour) {
		t.Errorf("the expiry became %s", left)
	}
	if v := takeAt(t, limiter, key, at.Add(10*time.Second)); !v.Allowed {
		t.Error("ten tenths are not one")
	}
}

// TestText: the fields are decimal text that others can read, exact to the microsecond.
func TestText(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 2, RefillRate: 0.3, RefillInterval: time.Second})
	at := time.UnixMicro(1_700_000_000_000_042)
	for _, c := range []struct {
		after        time.Duration
		tokens, last string
	}{
		{0, "1", "1700000000.000042"},
		{0, "0", "1700000000.000042"},
		{4500 * time.Millisecond, "0.2", "1700000004.000042"},
		{7 * time.Second, "0.1", "1700000007.000042"},
	} {
		if v := takeAt(t, limiter, key, at.Add(c.after)); !v.Allowed {
			t.Fatalf("denied after %s", c.after)
		}
		if h := client.HGetAll(t.Context(), key).Val(); h["tokens"] != c.tokens || h["last_refill"] != c.last || len(h) != 2 {
			t.Errorf("after %s: %v; want tokens %s, last_refill %s", c.after, h, c.tokens, c.last)
		}
	}
}

// TestThirds writes what no decimal text holds in the digits that tell it from all else.
func TestThirds(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 2, RefillRate: 1.0 / 3, RefillInterval: time.Second})
	at := time.Unix(1_700_000_000, 0)
	for range 2 {
		takeAt(t, limiter, key, at)
	}
	takeAt(t, limiter, key, at.Add(4*time.Second))
	if tokens, err := client.HGet(t.Context(), key, "tokens").Float64(); tokens != 1.0/3 || err != nil {
		t.Errorf("%v tokens, error %v; want a third", tokens, err)
	}
}

// TestForeignText reads what floats of other programs look like.
func TestForeignText(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 10, RefillRate: 0.1, RefillInterval: time.Second})
	at := time.UnixMicro(1_700_000_000_123_456)
	for _, c := range []struct {
		tokens, last string
		allowed      bool
		remaining    int64
		retry        time.Duration
	}{
		{"3", "1700000000.123456", true, 2, 0},
		{"3.0", "1700000000.1234560", true, 2, 0},
		{"0.99999999999999989", "1700000000.1234560", true, 0, 0}, // ten times 0.1
		{"0.89999999999999991", "1700000000.1234560", false, 0, time.Second},
		{"0.89999999999999991", "1699999999.1234560", true, 0, 0}, // and a tenth
		{"0.8", "1699999999.1234562", false, 0, time.Second},      // the double nearest to .123456
		{"0.8", "1699999998.1234567", false, 0, time.Microsecond},
		{"1e1", "1.7e9", true, 9, 0},
		{"25", "1700000000", true, 9, 0},                                           // another capacity
		{"0", "0", true, 9, 0},                                                     // long ago
		{"0", "1700000007", false, 0, 10*time.Second + 6_876_544*time.Microsecond}, // ahead
	} {
		client.Del(t.Context(), key)
		client.HSet(t.Context(), key, "tokens", c.tokens, "last_refill", c.last)
		if v := takeAt(t, limiter, key, at); v.Allowed != c.allowed || v.Remaining != c.remaining || v.Retry != c.retry {
			t.Errorf("%s tokens at %s: %+v; want %v, %d, %s", c.tokens, c.last, v, c.allowed, c.remaining, c.retry)
		}
		if left := client.PTTL(t.Context(), key).Val(); left <= 0 {
			t.Errorf("%s tokens at %s: no expiry", c.tokens, c.last)
		}
	}
}

// TestForeignValue finds what is no bucket: one line says so and names the key, and
// nothing is overwritten, and nothing given an end.
func TestForeignValue(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{})
	for name, set := range map[string]func(c redis.Cmdable){
		"string":                   func(c redis.Cmdable) { c.Set(t.Context(), key, "of another program", 0) },
		"list":                     func(c redis.Cmdable) { c.LPush(t.Context(), key, "x") },
		"another hash":             func(c redis.Cmdable) { c.HSet(t.Context(), key, "name", "Ann") },
		"words":                    func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "many", "last_refill", "1700000000") },
		"empty":                    func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "", "last_refill", "") },
		"no time":                  func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "3") },
		"no tokens":                func(c redis.Cmdable) { c.HSet(t.Context(), key, "last_refill", "1700000000") },
		"negative":                 func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "-1", "last_refill", "1700000000") },
		"not a number":             func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "nan", "last_refill", "1700000000") },
		"infinite":                 func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "inf", "last_refill", "1700000000") },
		"bad time":                 func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "3", "last_refill", "yesterday") },
		"infinite time":            func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "3", "last_refill", "inf") },
		"a time that is no number": func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "3", "last_refill", "nan") },
		"milliseconds":             func(c redis.Cmdable) { c.HSet(t.Context(), key, "tokens", "3", "last_refill", "1700000000000") },
	} {
		t.Run(name, func(t *testing.T) {
			client.Del(t.Context(), key)
			set(client)
			before := client.Dump(t.Context(), key).Val()
			allowed, _, err := limiter.Allow(t.Context(), key)
			if allowed || err == nil || !strings.Contains(err.Error(), `"`+key+`"`) || !strings.Contains(err.Error(), "choose another key") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, error %v; want one line that names %q", allowed, err, key)
			}
			if after := client.Dump(t.Context(), key).Val(); after != before {
				t.Error("overwritten")
			}
			if left := client.PTTL(t.Context(), key).Val(); left != -1 {
				t.Errorf("given an expiry of %s", left)
			}
		})
	}
}
