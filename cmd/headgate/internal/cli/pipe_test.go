package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/gate"
)

// passes are the times at which 20 lines pass, in seconds.
var passes = map[string][]float64{
	"5/s":             {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3},
	"2.5/s":           {0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 6},
	"5/s burst 5":     {0, 0, 0, 0, 0, .2, .4, .6, .8, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8, 3},
	"5/s --burst 5":   {0, 0, 0, 0, 0, .2, .4, .6, .8, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8, 3},
	"5/s --burst 1":   {0, .2, .4, .6, .8, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.2, 3.4, 3.6, 3.8},
	"5/s burst 1":     {0, .2, .4, .6, .8, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.2, 3.4, 3.6, 3.8},
	"5/s sliding-log": {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3},
}

const twenty = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"

// clocked takes down what is written, and when.
type clocked struct {
	start time.Time
	text  strings.Builder
	times []float64
}

func (c *clocked) Write(b []byte) (int, error) {
	c.times = append(c.times, time.Since(c.start).Round(time.Millisecond).Seconds())
	return c.text.Write(b)
}

// pipes passes in through a pipe under a limit, until ctx ends.
func pipes(ctx context.Context, in io.Reader, out io.Writer, args ...string) (code int, stderr string) {
	var w bytes.Buffer
	code = exec(ctx, append([]string{"pipe", "--limit"}, args...), in, out, &w)
	return code, w.String()
}

// Each line is passed at its start time, to the millisecond, and by a write of its own.
func TestPipeLines(t *testing.T) {
	for limit, want := range passes {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &clocked{start: time.Now()}
				text, burst, _ := strings.Cut(limit, " --burst ")
				args := []string{text}
				if burst != "" {
					args = append(args, "--burst", burst)
				}
				if code, stderr := pipes(t.Context(), strings.NewReader(twenty), out, args...); code != 0 || stderr != "" {
					t.Error(code, stderr)
				}
				if out.text.String() != twenty || !slices.Equal(out.times, want) {
					t.Errorf("%q at %v; want %v", out.text.String(), out.times, want)
				}
			})
		})
	}
}

// What is passed is what was read: long lines, no end of the last line, any bytes.
func TestPipeIsTransparent(t *testing.T) {
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rand.Int())
	}
	for name, text := range map[string]string{
		"nothing":            "",
		"no end":             "a\nb",
		"empty lines":        "\n\n\n",
		"carriage returns":   "a\r\nb\r\n",
		"zeros":              "\x00\n\x00\xff",
		"as long as a part":  strings.Repeat("x", longestPart) + "\n",
		"one longer":         strings.Repeat("x", longestPart+1) + "\ny",
		"one shorter":        strings.Repeat("x", longestPart-1) + "\ny",
		"several parts":      strings.Repeat("x", 5*longestPart) + "\n" + strings.Repeat("y", 3*longestPart),
		"a part and its end": strings.Repeat("x", longestPart),
		"noise":              string(noise),
	} {
		t.Run(name, func(t *testing.T) {
			for _, bytewise := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					args := []string{"7/s burst 7"}
					lines := strings.Count(text, "\n")
					if !strings.HasSuffix(text, "\n") && text != "" {
						lines++
					}
					want := time.Duration(max(lines-7, 0)) * time.Second / 7
					if bytewise {
						args = []string{"100000/s burst 1000", "--bytes"}
						want = time.Duration(max(len(text)-1000, 0)) * time.Second / 100_000
					}
					out := &clocked{start: time.Now()}
					if code, stderr := pipes(t.Context(), strings.NewReader(text), out, args...); code != 0 || out.text.String() != text {
						t.Errorf("exit %d, %s; %d bytes of %d", code, stderr, out.text.Len(), len(text))
					}
					if took := time.Since(out.start); took < want || took > want+time.Millisecond {
						t.Errorf("%v took %s; want %s", args, took, want)
					}
				})
			}
		})
	}
}

// Of several limits all are kept.
func TestPipeOfTwoLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &clocked{start: time.Now()}
		if code, stderr := pipes(t.Context(), strings.NewReader("a\nb\nc\nd\ne\n"), out, "2/s burst 1", "--limit", "3/10s"); code != 0 {
			t.Error(code, stderr)
		}
		if !slices.Equal(out.times, []float64{0, .5, 1, 10, 10.5}) {
			t.Error(out.times)
		}
	})
}

// An interrupt tells what had been read in vain, whatever the pipe waits for.
func TestPipeInterrupted(t *testing.T) {
	for _, c := range []struct{ name, text, limit, stderr string }{
		{"waiting for a start", "a\nb\nc\nd", "2/h", "2 lines had been read, but not written"},
		{"waiting for the last start", "a\nb", "1/h", "1 line had been read, but not written"},
		{"waiting for input", "a\nb\n", "2/h", "all that was read has been passed"},
		{"in a line", "a\nb\nc", "9/h", "1 line had been read, but not written"},
		{"in a long line", strings.Repeat("x", longestPart+1), "9/h", "1 line had been read, but not written"},
		{"waiting for input, bytes", "abc", "9/h --bytes", "all that was read has been passed"},
		{"waiting for a start, bytes", "abc", "2/h --bytes", "1 byte had been read, but not written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				in, w := io.Pipe()
				var write sync.WaitGroup
				write.Go(func() { _, _ = io.WriteString(w, c.text) })
				time.AfterFunc(10*time.Second, interrupt)
				code, stderr := pipes(ctx, in, io.Discard, strings.Fields(c.limit)...)
				if code != command.ExitInterrupted || stderr != "headgate: interrupted; "+c.stderr+"\n" {
					t.Errorf("exit %d, %s", code, stderr)
				}
				in.Close() // else the last read would be stuck for ever
				write.Wait()
			})
		})
	}
}

// Who reads the output has had enough, or it cannot be written.
func TestPipeOutput(t *testing.T) {
	for _, flag := range []string{"", "--bytes"} {
		for want, err := range map[int]error{command.ExitAllowed: syscall.EPIPE, command.ExitFailed: errors.New("disk full")} {
			code, stderr := pipes(t.Context(), strings.NewReader(twenty), broken{err}, strings.Fields("5/h "+flag)...)
			if code != want || (stderr == "") != (want == command.ExitAllowed) || strings.Count(stderr, "\n") > 1 {
				t.Errorf("%v: exit %d, %q", err, code, stderr)
			}
		}
	}
}

// Bytes go in parts that every limit grants at once, ten in a second or more.
func TestChunk(t *testing.T) {
	for texts, want := range map[string]int64{
		"1/h": 1, "100/s": 10, "100/s burst 5": 5, "1000/10s fixed-window": 10, "1000000/s": longestPart,
		"1000000000000/s": longestPart, "10/s, 100000/s": 1, "600000/m sliding-window": 1000, "7/s sliding-log": 1,
	} {
		var limits []headgate.Limit
		for text := range strings.SplitSeq(texts, ", ") {
			l, err := headgate.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			limits = append(limits, l)
		}
		l, err := headgate.NewLimiter(headgate.NewMemory(), limits...)
		if err != nil {
			t.Fatal(err)
		}
		if got := chunk(gate.NewKeyWaiter(l, "k")); got != want {
			t.Errorf("%s: %d; want %d", texts, got, want)
		}
	}
}
