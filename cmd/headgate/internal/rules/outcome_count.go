package rules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/await"
)

// Count says which requests a rule charges. The zero Count charges every request.
type Count struct {
	// Statuses are those of the responses that count; 4 stands for 400 to 499. The cost is taken
	// before the request, so that requests at the same time cannot pass, and refunded if another
	// status arrives; see [Admission.Outcome].
	Statuses []int

	// Denied counts only requests that another rule denies; see denial_count.go.
	Denied bool
}

// ParseCount reads an entry of a Count: a status such as 401, a class such as 4xx, or denied.
func ParseCount(text string) (Count, error) {
	if text == "denied" {
		return Count{Denied: true}, nil
	}
	digits, class := strings.CutSuffix(text, "xx")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || strconv.Itoa(n) != digits:
	case class && n >= 2 && n <= 5, !class && n >= 200 && n <= 599,
		!class && n == http.StatusSwitchingProtocols:
		return Count{Statuses: []int{n}}, nil
	}
	return Count{}, fmt.Errorf(
		"%q is not an outcome; want 101, a status from 200 to 599, 2xx to 5xx, or denied", text)
}

// String returns the text form of c, such as 401, 4xx; empty: every request counts.
func (c Count) String() string {
	var texts []string
	for _, n := range c.Statuses {
		if n < 10 {
			texts = append(texts, strconv.Itoa(n)+"xx")
		} else {
			texts = append(texts, strconv.Itoa(n))
		}
	}
	if c.Denied {
		texts = append(texts, "denied")
	}
	return strings.Join(texts, ", ")
}

// check reports what is wrong with c in r.
func (c Count) check(r *Rule) error {
	switch {
	case c.Denied && len(c.Statuses) > 0:
		return fmt.Errorf("is %s; want statuses, or denied alone", c)
	case c.String() != "" && len(r.Limits) == 0:
		return fmt.Errorf("is %s, which has no effect without limits; want limits", c)
	case c.Denied && (r.Permits > 0 || r.Cost.String() != "1"):
		return errors.New("is denied, which excludes permits and a cost; want limits only")
	}
	return nil
}

// checkClear reports what is wrong with c as the statuses that clear what count counts.
func (c Count) checkClear(count Count) error {
	switch {
	case c.Denied:
		return errors.New("has denied; want statuses such as 200")
	case len(c.Statuses) > 0 && len(count.Statuses) == 0:
		return fmt.Errorf("is %s, which has no effect without statuses in count; want both", c)
	}
	for _, n := range c.Statuses {
		class := Count{Statuses: []int{n}}
		if count.counts(n) || slices.ContainsFunc(count.Statuses, class.counts) {
			return fmt.Errorf("is %s, which count has, too; want each status in one of them", c)
		}
	}
	return nil
}

// counts reports whether a response with this status counts.
func (c Count) counts(status int) bool {
	return slices.Contains(c.Statuses, status) || slices.Contains(c.Statuses, status/100)
}

// Outcome refunds what rules that do not count the status of the response have charged, and resets
// the keys of rules that it clears. It must be called before [Admission.Settle], whose costs it
// drops for these rules. A request without an Outcome stays charged. So does one whose ctx has
// ended: a client that leaves before the answer cannot make a guess free. It goes on if ctx ends.
func (a *Admission) Outcome(ctx context.Context, status int) {
	if len(a.counted) == 0 || ctx.Err() != nil {
		return
	}
	free := slices.DeleteFunc(a.counted, func(c ask) bool { return c.rule.Count.counts(status) })
	a.counted = nil
	a.late = slices.DeleteFunc(a.late, func(c ask) bool {
		return slices.ContainsFunc(free, func(r ask) bool { return r.rule == c.rule })
	})
	var refunds, cleared []ask
	for _, c := range free {
		if c.rule.Clear.counts(status) {
			cleared = append(cleared, c)
			continue
		}
		c.cost = -c.cost
		refunds = append(refunds, c)
	}
	if len(refunds) > 0 {
		a.engine.settle(ctx, refunds)
	}
	for _, c := range cleared {
		a.engine.clear(ctx, &c)
	}
}

// clear puts the key of a back in its initial state. It goes on if ctx ends.
func (e *Engine) clear(ctx context.Context, a *ask) {
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	if err := e.reset(ctx, a.key, a.limits); err != nil {
		e.observe(a, Failed, err)
	}
}
