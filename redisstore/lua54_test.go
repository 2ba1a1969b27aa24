package redisstore_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// lua54 is an interpreter of Lua 5.4 that runs scripts over a table in place of Redis.
type lua54 struct {
	in    io.Writer
	out   *bufio.Scanner
	begun time.Time
}

func startLua54(t *testing.T) *lua54 {
	t.Helper()
	path, err := exec.LookPath("lua5.4")
	if err != nil {
		path, err = exec.LookPath("lua") // as it is named beyond Debian and Alpine
	}
	version := []byte{}
	if err == nil {
		version, err = exec.CommandContext(t.Context(), path, "-v").CombinedOutput()
	}
	if err != nil || !strings.HasPrefix(string(version), "Lua 5.4") {
		t.Fatalf("%s %v: install Lua 5.4 with scripts/deps lua", version, err)
	}
	cmd := exec.CommandContext(t.Context(), path, "../internal/redistest/lua54.lua")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<22)
	return &lua54{in, s, time.Now()}
}

// run runs a script, and returns its answer, and for each key its value and lifetime.
func (l *lua54) run(
	t *testing.T, text string, keys, args []string,
) (answer string, states []string) {
	t.Helper()
	fields := append([]string{text, strconv.Itoa(len(keys))}, keys...)
	var line strings.Builder
	for _, field := range append(fields, args...) {
		line.WriteString(" ." + hex.EncodeToString([]byte(field)))
	}
	if _, err := io.WriteString(l.in, line.String()+"\n"); err != nil {
		t.Fatal(err)
	}
	if !l.out.Scan() {
		t.Fatal("the interpreter has ended", l.out.Err())
	}
	states = strings.Fields(l.out.Text())
	decoded, err := hex.DecodeString(states[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded), states[1:]
}

// runRedis runs a script in Redis, in the same form.
func runRedis(
	t *testing.T, client *redis.Client, text string, keys, args []string,
) (string, []string) {
	t.Helper()
	list := make([]any, len(args))
	for i, arg := range args {
		list[i] = arg
	}
	v, err := client.Eval(t.Context(), text, keys, list...).Result()
	answer := ""
	if _, answered := errors.AsType[redis.Error](err); answered {
		answer = "e" + err.Error()
	} else if err != nil {
		t.Fatal(err)
	}
	switch v := v.(type) {
	case string:
		answer = "s" + v
	case []any:
		var texts []string
		for _, one := range v {
			texts = append(texts, fmt.Sprintf("integer %d", one))
		}
		answer = strings.Join(texts, ",")
	}
	var states []string
	for _, key := range keys {
		value, err := client.Get(t.Context(), key).Result()
		if errors.Is(err, redis.Nil) {
			states = append(states, "-", "-")
			continue
		}
		states = append(states, "."+hex.EncodeToString([]byte(value)),
			strconv.FormatInt(client.PTTL(t.Context(), key).Val().Milliseconds(), 10))
	}
	return answer, states
}

// compared runs a script under both, at a time of the server, and compares answers and states.
func compared(
	t *testing.T, l *lua54, client *redis.Client, at time.Time, text string, keys, args []string,
) (answer string) {
	t.Helper()
	micros := at.UnixMicro()
	text = strings.ReplaceAll(text, "redis.pcall('TIME')",
		fmt.Sprintf("{'%d', '%d'}", micros/1e6, micros%1e6))
	answer, states := l.run(t, text, keys, args)
	want, wanted := runRedis(t, client, text, keys, args)
	if answer != want {
		t.Fatalf("the answer is %q; want %q; args %q", answer, want, args)
	}
	passed := time.Since(l.begun).Milliseconds() + 1000 // at most, since a key was written
	for i := 0; i < len(states); i += 2 {
		life, _ := strconv.ParseInt(states[i+1], 10, 64)
		left, _ := strconv.ParseInt(wanted[i+1], 10, 64)
		if states[i] != wanted[i] || left > life || left < life-passed {
			t.Fatalf("%s: the state is %q; want %q", keys[i/2], states[i:i+2], wanted[i:i+2])
		}
	}
	return answer
}

// randomCalls returns calls that may share a trip.
func randomCalls(
	random *rand.Rand, at time.Time, limits []headgate.Limit,
) (calls [][]headgate.Request, slow bool) {
	plain := random.IntN(2) == 0
	n, group := 1+random.IntN(3), 1
	if plain && random.IntN(2) == 0 {
		n = 1
	}
	for range n {
		if !plain {
			group = 1 + random.IntN(3)
		}
		var rs []headgate.Request
		for range group {
			l := limits[random.IntN(len(limits))]
			capacity := l.Capacity()
			costs := []int64{1, 1, 2, 0, -1, 3, capacity / 2, capacity, capacity + 1, -capacity,
				1 << 40, -1 << 52, 1<<53 - 1}
			r := headgate.Request{Key: strconv.Itoa(random.IntN(3)), Limit: l,
				Cost: costs[random.IntN(len(costs))]}
			r.Force = random.IntN(8) == 0
			if !plain {
				switch random.IntN(6) {
				case 0:
					r.At = at.Add(time.Microsecond * time.Duration(random.IntN(2e9)-1e9))
				case 1:
					r.MaxWait = time.Duration(random.IntN(100_000)) * time.Second
				case 2:
					r.Headroom = capacity / 4
				case 3:
					start := at.Add(time.Duration(random.IntN(1000)) * time.Second)
					r.Start, r.Cost = &start, -1
				}
			}
			if r.Validate() == nil {
				rs = append(rs, r)
			}
		}
		if len(rs) > 0 {
			calls = append(calls, rs)
		}
	}
	return calls, !plain
}

// Under Lua 5.4 with the names of 5.1, as in Dragonfly, the scripts of limits answer and write what
// they do in Redis, byte for byte: on the plain path and the slow one, with changed numbers, forced
// and extreme costs, clocks that step back, and states that were booked ahead.
func TestScriptsUnderLua54(t *testing.T) {
	interpreter, client := startLua54(t), newClient(t)
	var limits []headgate.Limit
	for _, text := range []string{
		"100/d", "7/d burst 3", "1000003/4000d burst 11", "b=10/d burst 20", "b=3/d burst 7",
		"90/d stepped",
		"s=5/d stepped burst 9", "s=4/2d stepped burst 30", "40/d fixed-window",
		"f=9/2d fixed-window",
		"f=20/2d fixed-window", "40/d sliding-window", "w=7/d sliding-window",
		"w=1000/d sliding-window",
		"12/d sliding-log", "l=30/d sliding-log", "l=5/d sliding-log", "40/day tz Asia/Tokyo",
		"c=9/week tz UTC", "c=30/week tz America/New_York", "20/month anchor 24",
	} {
		limits = append(limits, parse(t, text))
	}
	kinds := map[string]int{}
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 54))
		s, err := redisstore.New(client,
			redisstore.Options{Prefix: fmt.Sprintf("%s:%d:", t.Name(), seed)})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
		for range 250 {
			at = at.Add(time.Duration(random.Int64N(4_000_000_000)-100_000_000) * time.Microsecond)
			calls, slow := randomCalls(random, at, limits)
			if len(calls) == 0 {
				continue
			}
			text, keys, args := s.Script(slow, calls...)
			answer := compared(t, interpreter, client, at, text, keys, args)
			if strings.HasPrefix(answer, "eSLOWPATH ") {
				kinds["left"]++
				text, keys, args = s.Script(true, calls...)
				slow, answer = true, compared(t, interpreter, client, at, text, keys, args)
			}
			if answer[0] != 's' {
				t.Fatalf("seed %d: %q", seed, answer)
			}
			kinds[fmt.Sprintf("slow %v, lone %v", slow, len(args) == 1)]++
		}
	}
	if kinds["left"] < 5 || kinds["slow true, lone false"] < 250 ||
		kinds["slow false, lone true"] < 100 ||
		kinds["slow false, lone false"] < 50 {
		t.Errorf("too few of a kind: %v", kinds)
	}
}

// So does the script of permits.
func TestPermitsUnderLua54(t *testing.T) {
	interpreter, client := startLua54(t), newClient(t)
	s := newStore(t, client)
	random, at := rand.New(rand.NewPCG(1, 54)), time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	kinds := map[string]int{}
	for range 1500 {
		at = at.Add(time.Duration(random.IntN(40_000_000)) * time.Microsecond)
		id := strings.Repeat(string(rune('a'+random.IntN(6))), 16)
		op := []string{"acquire", "acquire", "renew", "release"}[random.IntN(4)]
		if op == "acquire" && random.IntN(5) == 0 {
			id = ""
		}
		now := int64(0)
		if random.IntN(3) == 0 {
			now = at.UnixMicro()
		}
		ttl := (100 + random.IntN(100)) * 1_000_000
		if op == "release" && random.IntN(2) == 0 {
			ttl = 0
		}
		args := []string{
			op, id, strconv.FormatInt(now, 10), strconv.Itoa(ttl), strconv.Itoa(1 + random.IntN(4)),
			strconv.Itoa(random.IntN(2)),
		}
		keys := []string{s.PermitName(strconv.Itoa(random.IntN(2)))}
		answer := compared(t, interpreter, client, at, redisstore.PermitScript(), keys, args)
		kinds[op+" "+answer[:len("integer 1")]]++
	}
	if len(kinds) < 6 {
		t.Errorf("only %v", kinds)
	}
}
