package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The contenders that show what the console costs, and their workloads.
const (
	consoleOffName    = "headgate, --console off"
	noViewerName      = "headgate, no viewer"
	tenViewersName    = "headgate, 10 viewers"
	consoleGranted    = "console, 10k random keys"
	consoleDenied     = "console, 1k keys, denied by a rule"
	consoleViewers    = 10
	consoleCallers    = 64
	consoleSlices     = 2
	firstEventTimeout = 10 * time.Second
)

// watched is a server with viewers of its console, and what it has used while it was asked.
type watched struct {
	name    string
	prefix  string // of its keys: the others do not know its viewers
	viewers int
	off     bool

	server *serviceProcess
	client Contender
	events atomic.Int64 // bytes that viewers were sent
	end    context.CancelFunc
	ended  sync.WaitGroup

	used    float64 // microseconds
	answers Answers
	span    time.Duration
}

func watchedField() []*watched {
	return []*watched{
		{name: consoleOffName, prefix: "a:", off: true},
		{name: noViewerName, prefix: "b:"},
		{name: tenViewersName, prefix: "c:", viewers: consoleViewers},
	}
}

func (p plan) consoleLoads() []serviceLoad {
	granted := uniform(p.redisKeys, keyOf)
	granted.Name = consoleGranted
	denied := denial()
	denied.Name = consoleDenied
	callers := []int{consoleCallers}
	return []serviceLoad{{granted, callers, nil, false}, {denied, callers, nil, false}}
}

// console measures servers that run at the same time, and are asked in turns: what is compared
// differs by less than a machine does from one second to the next. Only what a server uses while it
// is asked counts.
func (r *serviceRun) console(ctx context.Context, load serviceLoad, n int) (err error) {
	if err := r.redis.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	var field []*watched
	for _, w := range watchedField() {
		if !r.only.has(w.name) {
			continue
		}
		if err := w.start(ctx, r, load); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		defer func() { err = errors.Join(err, w.stop()) }()
		field = append(field, w)
	}
	for slice := range consoleSlices {
		for i := range field {
			w := field[(i+slice+n)%len(field)]
			if err := w.ask(ctx, load, r.span/consoleSlices); err != nil {
				return fmt.Errorf("%s, %s: %w", w.name, load.Name, err)
			}
		}
	}
	for _, w := range field {
		if w.viewers > 0 && w.events.Load() == 0 {
			return fmt.Errorf("%s, %s: the viewers were sent nothing", w.name, load.Name)
		}
		r.out.Add(Cell{servicePart, load.Name, consoleCallers, w.name}, Sample{
			ServerCPU: w.used / w.answers.all(), Rate: w.answers.all() / w.span.Seconds(),
		})
	}
	return nil
}

// start starts a server and its viewers, and takes each key once.
func (w *watched) start(ctx context.Context, r *serviceRun, load serviceLoad) (err error) {
	more := []string{"CACHE_KEY_PREFIX=" + w.prefix}
	if w.off {
		more = append(more, "HEADGATE_CONSOLE=off")
	}
	w.server, w.client, err = r.consoleServer(ctx, load, more)
	if err != nil {
		return err
	}
	ctx, w.end = context.WithCancel(ctx)
	failed := make(chan error, w.viewers)
	for range w.viewers {
		w.ended.Go(func() { failed <- w.view(ctx) })
	}
	for until := time.Now().Add(firstEventTimeout); w.viewers > 0 && w.events.Load() == 0; {
		select {
		case err := <-failed:
			return errors.Join(err, w.stop())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(until) {
			return errors.Join(errors.New("no event comes"), w.stop())
		}
	}
	if err := takeTogether(ctx, w.client, load.Seq); err != nil {
		return errors.Join(err, w.stop())
	}
	return nil
}

// consoleServer starts a server that is asked over gRPC or, so that the console notes the requests
// that it denies, by forward auth.
func (r *serviceRun) consoleServer(
	ctx context.Context, load serviceLoad, more []string,
) (*serviceProcess, Contender, error) {
	if !load.Denied {
		return calledByGRPC(r.startServer(ctx, r.programs.headgate, load, more...))
	}
	s, client, err := r.withRule(ctx, load, "1/d", more...)
	if err != nil {
		return nil, nil, err
	}
	return s, authCaller{client, "http://" + s.http + "/auth/bench"}, nil
}

// view reads events until ctx ends.
func (w *watched) view(ctx context.Context) error {
	url := "http://" + w.server.http + "/console/api/events"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	_, err = io.Copy(byteCounter{&w.events}, resp.Body)
	return err
}

type byteCounter struct{ n *atomic.Int64 }

// Write implements io.Writer.
func (c byteCounter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// ask lets the callers ask for a while.
func (w *watched) ask(ctx context.Context, load serviceLoad, span time.Duration) error {
	used, err := w.server.cpuMicros()
	if err != nil {
		return err
	}
	started := time.Now()
	_, answers, err := runClosedLoop(ctx, w.client, load.Seq, consoleCallers, span)
	if err != nil {
		return err
	}
	w.span += time.Since(started)
	after, err := w.server.cpuMicros()
	if err != nil {
		return err
	}
	w.used += after - used
	w.answers.add(answers)
	return answers.check(load.Denied)
}

func (w *watched) stop() error {
	w.end()
	w.ended.Wait()
	return errors.Join(closeContender(w.client), w.server.stop())
}
