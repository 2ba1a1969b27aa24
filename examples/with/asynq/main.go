// Asynq gives a task back to its queue until the limit of its tenant grants it.
//
//	go run ./examples/with/asynq redis://localhost:6379
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/hibiken/asynq"
)

func main() {
	redis, err := asynq.ParseRedisURI(os.Args[1])
	store, openErr := redisstore.Open(os.Args[1])
	if err := errors.Join(err, openErr); err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerSecond(5))
	if err != nil {
		log.Fatal(err)
	}
	mux := asynq.NewServeMux()
	mux.Use(limitTenants(limiter, asynq.NewClient(redis)))
	mux.HandleFunc("hello", func(context.Context, *asynq.Task) error { return nil })
	log.Fatal(asynq.NewServer(redis, config()).Run(mux))
}

type deniedError struct{ retryAfter time.Duration }

func (e deniedError) Error() string { return "denied: retry in " + e.retryAfter.String() }

func config() asynq.Config {
	return asynq.Config{
		IsFailure: func(err error) bool { return !errors.As(err, new(deniedError)) },
		RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
			if denied, ok := errors.AsType[deniedError](err); ok {
				return denied.retryAfter
			}
			return asynq.DefaultRetryDelayFunc(n, err, t)
		},
		DelayedTaskCheckInterval: time.Second, // each check grants one burst at most
	}
}

// limitTenants reads the tenant in the headers of a task.
func limitTenants(limiter *headgate.Limiter, client *asynq.Client) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			d, err := limiter.Allow(ctx, "tenant:"+t.Headers()["tenant"])
			if err != nil || d.Allowed() {
				return next.ProcessTask(ctx, t) // also while the store is unavailable
			}
			retried, _ := asynq.GetRetryCount(ctx)
			most, _ := asynq.GetMaxRetry(ctx)
			if retried < most {
				return deniedError{d.RetryAfter}
			}
			// The last try. Asynq archives a task that fails now, so another takes its place.
			queue, _ := asynq.GetQueueName(ctx)
			_, err = client.EnqueueContext(ctx,
				asynq.NewTaskWithHeaders(t.Type(), t.Payload(), t.Headers()),
				asynq.Queue(queue), asynq.ProcessIn(d.RetryAfter), asynq.MaxRetry(0))
			return err
		})
	}
}
