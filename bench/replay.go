package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/replay"
)

// accessLog is a log of n lines in the combined format: 500 requests a second of 5,000 clients,
// some of them busier than others.
func accessLog(n int) []byte {
	const agent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) " +
		"Chrome/131.0.0.0 Safari/537.36"
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

// replayRound replays a log on one core, and a fifth of it, for what a line more allocates.
func replayRound(ctx context.Context, log []byte, lines int, out *Results) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	end := bytes.IndexByte(log[len(log)/5:], '\n') + len(log)/5 + 1
	_, fewer, fewerBytes, err := replayed(ctx, log[:end])
	if err != nil {
		return err
	}
	elapsed, all, allBytes, err := replayed(ctx, log)
	if err != nil {
		return err
	}
	if all != int64(lines) {
		return fmt.Errorf("replay: read %d lines; want %d", all, lines)
	}
	out.Add(Cell{replayPart, count(lines) + " lines", 0, headgateName}, Sample{
		Rate:  float64(all) / elapsed.Seconds(),
		Bytes: max(0, allBytes-fewerBytes) / float64(all-fewer),
	})
	return nil
}

// replayed replays a log, and returns how long it took, the requests and the bytes allocated.
func replayed(ctx context.Context, log []byte) (time.Duration, int64, float64, error) {
	config := replay.Config{Limits: []headgate.Limit{headgate.PerMinute(60)}}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	report, err := replay.Run(ctx, config, replay.Log{Name: "log", Reader: bytes.NewReader(log)})
	if err != nil {
		return 0, 0, 0, err
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	return elapsed, report.Requests, float64(after.TotalAlloc - before.TotalAlloc), nil
}
