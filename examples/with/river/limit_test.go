package river

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/headgate/headgate/redisstore"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

var errWork = errors.New("from the worker")

// work works a job of tenant, and returns what River gets.
func work(t *testing.T, m rivertype.Middleware, arguments string) error {
	t.Helper()
	return m.(rivertype.WorkerMiddleware).Work(t.Context(),
		&rivertype.JobRow{EncodedArgs: []byte(arguments)},
		func(context.Context) error { return errWork })
}

func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(2))
		if err != nil {
			t.Fatal(err)
		}
		m := limitTenants(limiter)
		for i, c := range []struct {
			after     time.Duration
			arguments string
			snooze    time.Duration
		}{
			{0, `{"tenant":"a"}`, 0},
			{0, `{"tenant":"a"}`, 0},
			{0, `{"tenant":"a"}`, 30 * time.Second},
			{10 * time.Second, `{"tenant":"a"}`, 20 * time.Second},
			{0, `{"tenant":"b"}`, 0},
			{20 * time.Second, `{"tenant":"a"}`, 0},
		} {
			time.Sleep(c.after)
			err := work(t, m, c.arguments)
			if c.snooze == 0 {
				if !errors.Is(err, errWork) {
					t.Errorf("job %d: %v", i+1, err)
				}
				continue
			}
			snooze, ok := errors.AsType[*river.JobSnoozeError](err)
			if !ok || snooze.Duration != c.snooze {
				t.Errorf("job %d: %v; want a snooze of %v", i+1, err, c.snooze)
			}
		}
		if _, ok := errors.AsType[*river.JobCancelError](work(t, m, `[]`)); !ok {
			t.Error("arguments without a tenant are worked again")
		}
	})
}

// Jobs are worked while the store is unavailable. Nothing listens on port 1.
func TestUnavailable(t *testing.T) {
	store, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerMinute(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := work(t, limitTenants(limiter), `{"tenant":"a"}`); !errors.Is(err, errWork) {
		t.Error(err)
	}
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../../docs/jobs.md", "river", "limit.go")
}
