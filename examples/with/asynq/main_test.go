package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/observe"
	"github.com/hibiken/asynq"
)

// run lets the one task run that is to be retried, or else scheduled, after at least that time.
func run(t *testing.T, inspector *asynq.Inspector, retry bool, least time.Duration) {
	t.Helper()
	tasks := []*asynq.TaskInfo(nil)
	for len(tasks) == 0 { // until the worker has returned it
		info, err := inspector.GetQueueInfo("default")
		if err != nil || info.Archived > 0 || retry && info.Scheduled > 0 || !retry && info.Retry > 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		list := inspector.ListScheduledTasks
		if retry {
			list = inspector.ListRetryTasks
		}
		if tasks, err = list("default"); err != nil {
			t.Fatal(err)
		}
	}
	if wait := time.Until(tasks[0].NextProcessAt); wait < least {
		t.Errorf("it waits for %v; want at least %v", wait, least)
	}
	if err := inspector.RunTask("default", tasks[0].ID); err != nil {
		t.Fatal(err)
	}
}

// A task fails once, and is denied before and after that more often than its MaxRetry, 1.
func TestDeniedTaskIsNotLost(t *testing.T) {
	redis := asynq.RedisClientOpt{Addr: redistest.Start(t).Addr}
	client, inspector := asynq.NewClient(redis), asynq.NewInspector(redis)
	defer client.Close()
	defer inspector.Close()
	events, result := make(chan string), make(chan error)
	store, err := observe.New(headgate.NewMemory(), observe.Observer{
		Decided: func(_ context.Context, e observe.Event) {
			if e.Outcome == observe.Denied {
				events <- "denied"
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerHour(1))
	if err != nil {
		t.Fatal(err)
	}
	mux := asynq.NewServeMux()
	mux.Use(limitTenants(limiter, client))
	mux.HandleFunc("hello", func(_ context.Context, task *asynq.Task) error {
		events <- string(task.Payload()) + " of " + task.Headers()["tenant"]
		return <-result
	})
	c := config()
	c.TaskCheckInterval, c.LogLevel = 10*time.Millisecond, asynq.FatalLevel
	server := asynq.NewServer(redis, c)
	if err := server.Start(mux); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()

	expect := func(want string) {
		t.Helper()
		if got := <-events; got != want {
			t.Fatalf("%q; want %q", got, want)
		}
	}
	if _, err := limiter.Allow(t.Context(), "tenant:a"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.EnqueueContext(t.Context(), asynq.NewTaskWithHeaders("hello",
		[]byte("a task"), map[string]string{"tenant": "a"}), asynq.MaxRetry(1)); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []error{errors.New("its only failure"), nil} {
		retry := outcome != nil
		for range 3 {
			expect("denied")
			run(t, inspector, retry, 50*time.Minute)
		}
		expect("denied")
		if err := limiter.Reset(t.Context(), "tenant:a"); err != nil {
			t.Fatal(err)
		}
		run(t, inspector, retry, 50*time.Minute)
		expect("a task of a")
		result <- outcome
		if retry {
			run(t, inspector, true, 0)
		}
	}
}
