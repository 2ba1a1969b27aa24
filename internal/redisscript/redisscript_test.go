package redisscript_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/redisscript"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// count charges a counter, and says what it was and by whose clock it went.
var count = redisscript.New(`
local time = ARGV[1] == '0' and redis.pcall('TIME') or {}
if time.err then
  return redis.error_reply('NOTIME ' .. time.err)
end
return {redis.call('INCR', KEYS[1]), ARGV[1] == '0' and 0 or 1}`)

func arguments(now int64) []any { return []any{now} }

func connect(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestRun runs a script that the server does not know, forgets, and knows.
func TestRun(t *testing.T) {
	client := connect(t, &redis.Options{Addr: redistest.Start(t).Addr})
	for i := range int64(4) {
		numbers, err := count.Run(t.Context(), client, []string{"k"}, arguments(0))
		if err != nil || len(numbers) != 2 || numbers[0] != i+1 {
			t.Fatalf("run %d: %v, %v", i+1, numbers, err)
		}
		if i%2 == 0 {
			client.ScriptFlush(t.Context())
		}
	}
}

// TestRunOnce loses answers: a client with its usual retries does not send again.
func TestRunOnce(t *testing.T) {
	server := redistest.Start(t)
	direct := connect(t, &redis.Options{Addr: server.Addr})
	if _, err := count.Run(t.Context(), direct, []string{"k"}, arguments(0)); err != nil {
		t.Fatal(err)
	}
	lossy := connect(t, &redis.Options{Addr: redistest.LoseAnswers(t, server.Addr, "evalsha"),
		Protocol: 2, DisableIdentity: true})
	if numbers, err := count.Run(t.Context(), lossy, []string{"k"}, arguments(0)); err == nil {
		t.Fatalf("a lost answer gave %v", numbers)
	}
	if n, err := direct.Get(t.Context(), "k").Int(); n != 2 || err != nil {
		t.Errorf("charged %d times, error %v; want 2", n, err)
	}
}

// TestClock: a server that keeps its time is found out once.
func TestClock(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all",
		"-time"); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]struct{ callers, refusals int64 }{"default": {0, 0},
		"app": {1, 1}} {
		o := &redis.Options{Addr: server.Addr}
		if user == "app" {
			o.Username, o.Password = user, "pw"
		}
		client := connect(t, o)
		var clock redisscript.Clock
		var asked int64
		for i := range int64(3) {
			numbers, err := clock.Run(t.Context(), client, count, []string{user},
				func(now int64) []any {
					asked++
					return arguments(now)
				})
			if err != nil || numbers[0] != i+1 || numbers[1] != want.callers {
				t.Errorf("%s, run %d: %v, %v", user, i+1, numbers, err)
			}
		}
		if asked != 3+want.refusals {
			t.Errorf("%s: the arguments were asked for %d times; want %d", user, asked,
				3+want.refusals)
		}
	}
}

// TestExplain makes one line that ends with what would help.
func TestExplain(t *testing.T) {
	client := connect(t, &redis.Options{Addr: redistest.Start(t).Addr})
	client.Set(t.Context(), "k", "word", 0)
	_, err := count.Run(t.Context(), client, []string{"k"}, arguments(0))
	explained := redisscript.Explain("me", err,
		[]redisscript.Advice{{Prefix: "value is not", Text: "count"}})
	if text := explained.Error(); text != "me: ERR value is not an integer or out of range; count" {
		t.Error(text)
	}
	if _, ok := errors.AsType[redis.Error](explained); !ok {
		t.Error("the client's error is lost")
	}
	if err := redisscript.Explain("me", nil, nil); err != nil {
		t.Error(err)
	}
	// Redis 6.2
	refused := errors.New("ERR Error running script (call to f_2d): @user_script:5: " +
		"@user_script: 5: The user may not")
	explained6 := redisscript.Explain("me", refused,
		[]redisscript.Advice{{Prefix: "The user", Text: "ask"}})
	if text := explained6.Error(); text != "me: The user may not; ask" {
		t.Error(text)
	}
	// Redis 6.2
	full := errors.New("ERR Error running script (call to f_2d): @user_script:5: @user_script: " +
		"5: -OOM no: room")
	if text := redisscript.Explain("me", full,
		nil).Error(); text != "me: OOM no: room; the server is out of memory: raise its maxmemory" {
		t.Error(text)
	}
	if again := redisscript.Explain("you", explained, nil); again.Error() != explained.Error() {
		t.Error(again)
	}
	plain := redisscript.Explain("me", errors.New("two\nlines"), nil)
	if text := plain.Error(); text != "me: two lines" {
		t.Error(text)
	}
}

// TestExplainByItsWords finds the advice by words of the text: other servers have other texts.
func TestExplainByItsWords(t *testing.T) {
	const script = "ERR Error compiling script (new function): :16: Script attempted to access " +
		"nonexistent global variable 'struct'"
	const noStruct = "; the Lua of this server has no struct library"
	const lacks = "; the server, or a proxy in front of it, does not have this command: enable " +
		"EVALSHA and EVAL"
	for text, want := range map[string]string{
		// miniredis 2.40
		script + " stack traceback:  [G]: in function " +
			"'error'": "me: " + script + noStruct,
		"ERR user_script:1: attempt to index a nil value (global " +
			"'struct')": "(global 'struct')" + noStruct,
		// Redis 6.2
		"ERR unknown command `evalsha`, with args beginning with: " +
			"`\x00`, ": "me: ERR unknown command `evalsha`" + lacks,
		"ERR unknown command 'eval', with args beginning with: " +
			"'\x05' ": "me: ERR unknown command 'eval'" + lacks,
		"EOF": "me: EOF; the connection was closed; if this happens on every call, write rediss",
		"read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by " +
			"peer": "; the connection was closed;",
		"tls: first record does not look like a TLS " +
			"handshake": "; the port has no TLS: write redis instead of rediss in " +
			"the URL",
		"MOVED 15495 127.0.0.1:26702": "; this is a node " +
			"of a Cluster: use a client for a Cluster",
	} {
		err := errors.New(text)
		if !strings.Contains(text, "EOF") && !strings.Contains(text, "tcp") &&
			!strings.Contains(text, "tls") {
			err = refusal(text)
		}
		got := redisscript.Explain("me", err, nil).Error()
		if !strings.Contains(got, want) || strings.ContainsAny(got, "\x00\x05\n") {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
	}
}

// refusal is an error of a server.
type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) RedisError() {}

// TestRunTriesAgain runs a script on two keys of a slot that is on its way to another server,
// which is refused while one of the keys is there and the other is not.
func TestRunTriesAgain(t *testing.T) {
	cluster := redistest.StartCluster(t)
	source, target := cluster.Servers[2], cluster.Servers[0] // "foo" has slot 12182
	do := func(s *redistest.Server, command ...string) string {
		t.Helper()
		reply, err := s.Do(t.Context(), command...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	do(source, "SET", "{foo}1", "1")
	do(target, "CLUSTER", "SETSLOT", "12182", "IMPORTING", do(source, "CLUSTER", "MYID"))
	do(source, "CLUSTER", "SETSLOT", "12182", "MIGRATING", do(target, "CLUSTER", "MYID"))
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	_, err := count.Run(t.Context(), client, []string{"{foo}1", "{foo}2"}, arguments(0))
	if !redis.HasErrorPrefix(err, "TRYAGAIN") {
		t.Fatalf("error %v, want TRYAGAIN", err)
	}
	// of Redis 6.2, the target refuses
	stats := do(source, "INFO", "errorstats") + do(target, "INFO", "errorstats")
	if !strings.Contains(stats, "errorstat_TRYAGAIN:count=9\r\n") {
		t.Errorf("want the script to be sent nine times:\n%s", stats)
	}
	do(source, "CLUSTER", "SETSLOT", "12182", "STABLE")
	do(target, "CLUSTER", "SETSLOT", "12182", "STABLE")
	if numbers, err := count.Run(t.Context(), client, []string{"{foo}1", "{foo}2"},
		arguments(0)); err != nil || numbers[0] != 2 {
		t.Errorf("when the slot stays: %v, %v; what was refused must not count", numbers, err)
	}
}
