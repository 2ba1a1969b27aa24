package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// accessLog is a log of n lines in the combined format: 500 requests a second of 5,000 clients,
// some of them busier than others.
func accessLog(n int) []byte {
	const agent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 " +
		"(KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
	r := random(3)
	at := time.Date(2026, 1, 12, 7, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	for i := range n {
		client := min(int(r.ExpFloat64()*2000), 4999)
		fmt.Fprintf(&log, "198.18.%d.%d - - [%s] \"GET /shop/item/%d?ref=mail HTTP/1.1\" 200 %d "+
			"\"https://example.com/\" %q\n", client/256, client%256,
			at.Add(time.Duration(i)*2*time.Millisecond).Format("02/Jan/2006:15:04:05 -0700"),
			r.IntN(300), i%10_000, agent)
	}
	return log.Bytes()
}

// replayed is one run of headgate replay.
type replayed struct {
	elapsed  time.Duration
	requests int64
	peak     float64 // bytes of memory
}

// replayRound replays a log on one core, and a fifth of it, for the memory of a line more.
func (p programs) replayRound(ctx context.Context, lines int, out *Results) error {
	fewer, err := p.replay(ctx, p.logFile(lines/5), lines/5)
	if err != nil {
		return err
	}
	all, err := p.replay(ctx, p.logFile(lines), lines)
	if err != nil {
		return err
	}
	out.Add(Cell{replayPart, count(lines) + " lines", 0, headgateName}, Sample{
		Rate:  float64(all.requests) / all.elapsed.Seconds(),
		Bytes: max(0, all.peak-fewer.peak) / float64(all.requests-fewer.requests),
	})
	return nil
}

// logFile is the file of the log of n lines.
func (p programs) logFile(n int) string {
	return filepath.Join(p.dir, fmt.Sprintf("access-%d.log", n))
}

// writeLogs writes the logs that replayRound replays.
func (p programs) writeLogs(lines int) error {
	for _, n := range []int{lines / 5, lines} {
		if err := os.WriteFile(p.logFile(n), accessLog(n), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// replay runs headgate replay on a file of n lines.
func (p programs) replay(ctx context.Context, file string, n int) (r replayed, err error) {
	cmd := exec.CommandContext(ctx, p.headgate, "replay", "--limit", "60/m", "--json", file)
	cmd.Args[0] = "headgate" // the binary's name is that of the peer
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	start := time.Now()
	text, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("replay: %w", err)
	}
	r.elapsed = time.Since(start)
	var report struct {
		Requests int64 `json:"requests"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return r, fmt.Errorf("replay: %w", err)
	}
	if report.Requests != int64(n) {
		return r, fmt.Errorf("replay: read %d lines; want %d", report.Requests, n)
	}
	r.requests = report.Requests
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = float64(usage.Maxrss) * 1024
	}
	return r, nil
}
