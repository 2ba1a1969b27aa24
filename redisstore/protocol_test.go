package redisstore

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

var update = flag.Bool("update", false, "write limits.json")

// exampleOf returns the lines of an example of docs/protocol.md by their first words.
func exampleOf(t *testing.T, page, begin string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(page, begin)
	_, text, block := strings.Cut(text, "```\n")
	text, _, ends := strings.Cut(text, "```")
	if !found || !block || !ends {
		t.Fatalf("the page has no example that begins with %q", begin)
	}
	lines := make(map[string]string)
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines[word] = strings.TrimSpace(rest)
	}
	return lines
}

func hexOf(t *testing.T, text string) string {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A port reads docs/protocol.md, so its examples are what a store sends and is answered.
func TestExamplesOfTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	bucket := headgate.Request{Key: "user:42", Limit: headgate.PerMinute(100).Burst(20), Cost: 1}
	charged := bucket
	charged.Cost = 3
	log := headgate.Request{Key: "user:42", Cost: 1, Limit: headgate.SlidingLog(5, 15*time.Minute)}
	for begin, rs := range map[string][]headgate.Request{
		"For example, one token": {bucket}, "For example, 3 tokens": {charged, log},
	} {
		lines := exampleOf(t, page, begin)
		b := newBatch()
		b.add(s.newCall(rs, charge))
		b.prepare(0)
		set, args := b.set, []string{string(b.packed), string(b.requests)}
		if len(rs) == 1 {
			set, args = set|lone, args[:1]
		}
		sum := sha1.Sum([]byte(source(set))) //nolint:gosec // Redis names scripts so
		if got := hex.EncodeToString(sum[:]); got != lines["SHA-1"] {
			t.Errorf("%s: the script is %s, the page has %s", begin, got, lines["SHA-1"])
		}
		for i, name := range b.names.all {
			if field := "KEYS[" + string(rune('1'+i)) + "]"; name != lines[field] {
				t.Errorf("%s: %s is %q, the page has %q", begin, field, name, lines[field])
			}
		}
		for i, arg := range args {
			if field := "ARGV[" + string(rune('1'+i)) + "]"; arg != hexOf(t, lines[field]) {
				t.Errorf("%s: %s is % x", begin, field, arg)
			}
		}
		if want, found := lines["answer"]; found {
			got, err := client.Eval(t.Context(), source(set), b.names.all, args[0]).Text()
			if err != nil || got != hexOf(t, want) {
				t.Errorf("%s: answer % x, %v", begin, got, err)
			}
		}
	}
}

// limitForPorts is a limit of limits.json, or a text that is refused.
type limitForPorts struct {
	Text     string `json:"text"`
	Refused  bool   `json:"refused,omitempty"`
	Limit    string `json:"limit,omitempty"` // canonical, with its name
	ID       string `json:"id,omitempty"`
	Number   int    `json:"algorithm,omitempty"`
	Capacity int64  `json:"capacity"`
	A        int64  `json:"a"`
	B        int64  `json:"b"`
	At       int64  `json:"at_us,omitempty"` // of a calendar: when a and b are right
}

type keyForPorts struct {
	Key    []byte `json:"key_base64"`
	Secret string `json:"secret,omitempty"`
	Name   []byte `json:"redis_key_base64"` // under 1/s
}

// The limits and keys of limits.json hold ports to the texts, IDs and numbers of this package.
func TestLimitsForPorts(t *testing.T) {
	var file struct {
		Limits []limitForPorts `json:"limits"`
		Keys   []keyForPorts   `json:"keys"`
	}
	for _, text := range textsForPorts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			file.Limits = append(file.Limits, limitForPorts{Text: text, Refused: true})
			continue
		}
		times := []int64{0}
		if l.Algorithm() == headgate.AlgorithmCalendarWindow {
			times = timesForPorts
		}
		for _, at := range times {
			a, b := numbers(l, at)
			file.Limits = append(file.Limits, limitForPorts{text, false, l.String(), l.ID(),
				int(l.Algorithm()), l.Capacity(), a, b, at})
		}
	}
	for _, secret := range []string{"", "0123456789abcdef"} {
		s := &Store{prefix: DefaultPrefix}
		if secret != "" {
			if err := s.HashKeys([]byte(secret)); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"", "user:42", "Zürich", "a}b%7D", "%", "\x00\xff", strings.Repeat("k", 1024),
			strings.Repeat("k", 1025), "hash:AAAAAAAAAAAAAAAAAAAAAA", "hash:AAAAAAAAAAAAAAAAAAAAAB", "hash:short"} {
			file.Keys = append(file.Keys, keyForPorts{[]byte(key), secret,
				[]byte(s.key(key, headgate.PerSecond(1).ID()))})
		}
	}
	want := []byte("{\"limits\":[\n" + rows(t, file.Limits) + "],\"keys\":[\n" + rows(t, file.Keys) + "]}\n")
	const name = "../limittest/testdata/limits.json"
	if *update {
		if err := os.WriteFile(name, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs; go test -run TestLimitsForPorts -update writes it: %v", name, err)
	}
}

// rows are values in JSON, each in a line.
func rows[T any](t *testing.T, values []T) string {
	t.Helper()
	var lines []string
	for _, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return strings.Join(lines, ",\n") + "\n"
}

var textsForPorts = []string{
	"1/s", "100/m burst 20", "6/60s", "1.5/s", "0.1/s", "2.50/m", "7/h", "3/1500ms", "1/1us", "1/µs",
	"5/15m sliding-log", "5/1h30m", "1000/week", "10/minute gcra", "10/min leaky-bucket burst 3",
	"100/day token-bucket", "10/sec stepped", "api=10/s", "api=10/s stepped burst 20", "9/90m",
	"a.b-c_D=5/15m sliding-log", " api = 5/7d fixed-window ", "0/d fixed-window", "5.0/s sliding-window",
	"1/285y", "9007199254740991/d fixed-window", "9007199254740992/d fixed-window", "65535/s sliding-log",
	"65536/s sliding-log", "52124/d sliding-window", "52125/d sliding-window", "100003/d burst 52124",
	"100003/d burst 52125", "4294967295/s sliding-window", "1/9007199254740991us stepped",
	"2/9007199254740991us stepped", "1000000/s burst 4503599627370495", "1000000/s burst 4503599627370496",
	"1000000/d", "0/s", "-1/s", "1/0s", "1/", "/s", "", "=1/s", "1x=1/s", "a b=1/s", "1.5/s sliding-log",
	"1/s burst", "1/s burst 0", "1/s burst 2 burst 3", "1/s burst -1", "1/s sliding-log burst 2", "1/s gcra stepped",
	"1/s fast", "1/5", "1/5y", "1/5m3", "1./s", ".5/s", "1e3/s", "+1/s", "1/s tz UTC", "1.0000000001/s",
	"1000/day tz UTC", "1000/d tz America/New_York", "q=1000/month", "1000/month tz Europe/Zurich anchor 17",
	"1000/month anchor 31", "1000/week tz Pacific/Apia", "1000/day tz Pacific/Apia", "1000/day calendar-window",
	"1000/year", "1000/year anchor 04-06", "1000/year anchor 02-29 tz Asia/Tokyo", "1000/day tz America/Havana",
	"1000/day tz America/Sao_Paulo", "9/month anchor 1", "9/month anchor 01", "9/month anchor 32", "9/year anchor 02-30",
	"9/year anchor 7", "9/week anchor 1 tz UTC", "9/day tz Local", "9/day tz No/Where", "9/day tz", "9/day tz UTC tz UTC",
	"0/month", "1.5/month", "9/month burst 3", "9/month sliding-log", "9/2d tz UTC", "9/month anchor x",
	"1000/day tz America/St_Johns", "1000/month tz America/Scoresbysund anchor 31",
}

// timesForPorts are around changes of clocks, and where windows are skipped.
var timesForPorts = []int64{
	time.Date(2011, 12, 29, 23, 0, 0, 0, time.UTC).UnixMicro(), // Apia skips December 30
	time.Date(2011, 12, 30, 11, 0, 0, 0, time.UTC).UnixMicro(),
	time.Date(2017, 10, 15, 2, 59, 59, 999_999_000, time.UTC).UnixMicro(), // São Paulo has no midnight
	time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC).UnixMicro(),
	time.Date(2006, 10, 29, 2, 15, 0, 0, time.UTC).UnixMicro(), // St. John's sets clocks back at 0:01
	time.Date(2006, 10, 29, 3, 0, 0, 0, time.UTC).UnixMicro(),
	time.Date(2026, 11, 1, 4, 30, 0, 0, time.UTC).UnixMicro(), // Havana has two midnights
	time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC).UnixMicro(),
	time.Date(2100, 1, 1, 0, 0, 0, 1000, time.UTC).UnixMicro(),
	1,
}
