// Package river limits the jobs of each tenant in River. A job over the limit is snoozed.
package river

import (
	"context"
	"encoding/json"

	"github.com/headgate/headgate"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// limitTenants is a middleware for river.Config.Middleware. The arguments of a job have a tenant.
func limitTenants(limiter *headgate.Limiter) rivertype.Middleware {
	return river.WorkerMiddlewareFunc(func(
		ctx context.Context, job *rivertype.JobRow, work func(context.Context) error,
	) error {
		var args struct {
			Tenant string `json:"tenant"`
		}
		if err := json.Unmarshal(job.EncodedArgs, &args); err != nil {
			return river.JobCancel(err)
		}
		d, err := limiter.Allow(ctx, "tenant:"+args.Tenant)
		if err == nil && !d.Allowed() {
			return river.JobSnooze(d.RetryAfter)
		}
		return work(ctx) // also while the store is unavailable
	})
}
