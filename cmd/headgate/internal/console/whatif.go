package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/sample"
)

// whatIf is what other limits would have denied of the samples of a rule.
type whatIf struct {
	From      *int64          `json:"from"`
	To        *int64          `json:"to"`
	Keys      int             `json:"sampled_keys"`
	KeyShare  float64         `json:"key_share"` // of all keys
	Requests  int             `json:"requests"`
	Denied    int64           `json:"denied"` // of the requests, as it was or in shadow
	DeniedBy  sample.DeniedBy `json:"denied_by"`
	Aside     int64           `json:"aside"`
	Instance  string          `json:"instance"` // that was asked
	Instances []sampled       `json:"instances"`
	Missing   []string        `json:"missing"`
	Alone     string          `json:"alone"` // why the other instances are not known
	Replay    *replay.Report  `json:"replay"`
}

// sampled is an instance whose decisions are in a what-if.
type sampled struct {
	Name     string  `json:"name"`
	From     *int64  `json:"from"`
	KeyShare float64 `json:"key_share"`
}

const (
	// maxReplayed bounds the requests of a what-if: each takes 48 bytes, and some microseconds for
	// every limit.
	maxReplayed = 1_000_000
	maxTried    = 8 // limits at a time

	whatIfTimeout = 50 * time.Second // includes the wait for another; a connection has a minute
)

// trial is the request of a what-if.
type trial struct {
	rule   string
	limits []headgate.Limit
	lifted bool // as if there were no bans and no overrides
}

func (h *Handler) readTrial(w http.ResponseWriter, r *http.Request) (t trial, err error) {
	var texts []string
	err = httpapi.ReadBody(w, r, httpapi.NoteField("rule", &t.rule),
		httpapi.LimitsField("limits", &texts),
		httpapi.Nullable(httpapi.FlagField("lifted", &t.lifted)))
	if err != nil {
		return t, err
	}
	if t.limits, err = httpapi.ParseLimits(texts); err != nil {
		return t, err
	}
	if len(texts) == 0 {
		return t, httpapi.BadField("limits", "missing", `limits such as ["100/m"]`)
	}
	if len(texts) > maxTried {
		return t, httpapi.BadField("limits", "a list of "+strconv.Itoa(len(texts)),
			"at most "+strconv.Itoa(maxTried))
	}
	return t, h.checkRule(t.rule)
}

// serveWhatIf replays the samples of a rule with other limits. The right to read is enough, because
// it changes nothing. One runs at a time, because it takes memory and time.
func (h *Handler) serveWhatIf(w http.ResponseWriter, r *http.Request) error {
	t, err := h.readTrial(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), whatIfTimeout)
	defer cancel()
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return errWhatIf
	}
	g := h.gather(ctx, t.rule)
	recent := sample.Together(g.parts, maxReplayed, t.lifted)
	if len(recent.Requests) == 0 {
		return noSample(&recent)
	}
	report, err := replay.RunRequests(ctx, replay.Config{Limits: t.limits, Detail: true},
		recent.Requests)
	if ctx.Err() != nil {
		return errWhatIf
	}
	if err != nil {
		return err
	}
	return reply(w, h.whatIf(&g, &recent, report))
}

var errWhatIf = &httpapi.Problem{Status: http.StatusServiceUnavailable,
	Detail: "the what-if took more than 50 s with the wait for another; try again with fewer limits"}

// checkRule returns an error if no rule with a sample has this name.
func (h *Handler) checkRule(name string) error {
	if strings.Contains(name, "/") {
		return &httpapi.Problem{Status: http.StatusUnprocessableEntity, Field: "rule",
			Detail: strconv.Quote(name) + " is a rule in Envoy's format, which has no sample"}
	}
	for _, r := range h.options.Engine.Rules() {
		if r.Name == name {
			return nil
		}
	}
	return &rules.NoRuleError{Name: name}
}

func noSample(r *sample.Recent) error {
	since := " since " + r.From.UTC().Format(time.TimeOnly) + " UTC" // all samples are complete
	detail := "there is no sample of this rule: it has decided nothing" + since
	if r.Aside > 0 {
		detail = "only bans and overrides have decided by this rule" + since +
			"; to replay their requests, set lifted to true"
	}
	return &httpapi.Problem{Status: http.StatusNotFound, Field: "rule", Detail: detail}
}

func (h *Handler) whatIf(g *gathered, r *sample.Recent, report *replay.Report) whatIf {
	w := whatIf{
		From: millis(r.From), To: millis(r.To), Keys: r.Keys, KeyShare: r.KeyShare,
		Requests: len(r.Requests), Denied: r.Denied, DeniedBy: r.DeniedBy, Aside: r.Aside,
		Instance: h.instance, Missing: append([]string{}, g.missing...), Replay: report,
	}
	if g.err != nil {
		w.Alone = "the other instances are not known: " + whyAlone(g.err)
	}
	for _, p := range g.parts {
		w.Instances = append(w.Instances, sampled{p.Name, millis(p.From), p.KeyShare()})
	}
	return w
}
