package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/problem"
)

// object builds a JSON object.
type object []byte

func newObject() object { return append(make(object, 0, 256), '{') }

func (o object) name(name string) object {
	if o[len(o)-1] != '{' {
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), '"', ':')
}

func (o object) flag(name string, value bool) object {
	return strconv.AppendBool(o.name(name), value)
}

func (o object) number(name string, value int64) object {
	return strconv.AppendInt(o.name(name), value, 10)
}

func (o object) text(name, value string) object {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err) // cannot happen: a text
	}
	return append(o.name(name), quoted...)
}

// seconds appends a duration, to the microsecond. It appends nothing for never.
func (o object) seconds(name string, d time.Duration) object {
	if d == headgate.Never {
		return o
	}
	micros := (d + time.Microsecond - 1) / time.Microsecond // a wait must not be too short
	return strconv.AppendFloat(o.name(name), float64(micros)/1e6, 'f', -1, 64)
}

func (o object) end() []byte { return append(o, '}', '\n') }

// decision appends the members of a decision.
func (o object) decision(d headgate.Decision, fits bool) object {
	retry := d.RetryAfter
	if fits {
		retry = 0 // a grant that was booked ahead has it in wait
	}
	return o.state(d).seconds("retry_after", retry).seconds("reset_after", d.ResetAfter)
}

// state appends the limit of a decision, and what it holds.
func (o object) state(d headgate.Decision) object {
	switch d.Limit {
	case headgate.Limit{}:
		o = o.text("limit", "ban").number("capacity", 0).number("remaining", 0)
	case headgate.Unlimited():
		o = o.text("limit", "unlimited")
		o = append(append(o.name("capacity"), "null"...).name("remaining"), "null"...)
	default:
		_, numbers, named := strings.Cut(d.Limit.String(), "=")
		if !named {
			numbers = d.Limit.String()
		}
		o = o.text("limit", numbers).number("capacity", d.Limit.Capacity())
		o = o.number("remaining", d.Remaining)
	}
	return o
}

// appendAnswer appends the members of a to o.
func appendAnswer(o object, a *rules.Answer) object {
	o = o.flag("allowed", a.Allowed)
	if a.Rule != nil {
		o = o.text("rule", a.Rule.Name)
	}
	o = o.decision(a.Strictest, a.Allowed && a.Mode == rules.Enforce)
	if a.Mode == rules.Shadow {
		o = o.flag("shadow_denied", !a.Fits)
	}
	if a.Strictest.Degraded() {
		o = o.flag("degraded", true)
	}
	return o
}

// eachLimit appends the list of the limits of a.
func eachLimit(o object, a *rules.Answer) object {
	o = append(o.name("limits"), '[')
	for i, d := range a.Decisions {
		if i > 0 {
			o = append(o, ',')
		}
		one := newObject().flag("allowed", d.Allowed()).decision(d, d.Allowed())
		o = append(append(o, one...), '}')
	}
	return append(o, ']')
}

// reply writes body, the answer to r. If the client prefers a status, the limits are also reported
// in header fields, and a denial is a 429.
func reply(
	w http.ResponseWriter, r *http.Request, allowed bool, body object, answers ...rules.Answer,
) {
	denied := false
	if prefersStatus(w, r) {
		writeFields(w.Header(), allowed, answers)
		if denied = !allowed; denied {
			body = denial(body, answers)
		}
	}
	send(w, denied, body)
}

// send writes body: as a problem document with status 429 if denied, else as JSON.
func send(w http.ResponseWriter, denied bool, body object) {
	if denied {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write(body.end()) // the client may have disconnected
		return
	}
	replyJSON(w, body)
}

// prefersStatus reports whether r has Prefer: status (RFC 7240). If so, it sets Preference-Applied.
func prefersStatus(w http.ResponseWriter, r *http.Request) bool {
	for _, line := range r.Header["Prefer"] {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(name), "status") {
				w.Header().Set("Preference-Applied", "status")
				return true
			}
		}
	}
	return false
}

func writeFields(h http.Header, allowed bool, answers []rules.Answer) {
	var all []headgate.Decision
	retry := time.Duration(0) // also of a ban, which is no limit
	for i := range answers {
		a := &answers[i]
		if a.Mode != rules.Enforce {
			continue
		}
		if !a.Allowed {
			retry = max(retry, a.Strictest.RetryAfter)
		}
		for _, d := range a.Decisions {
			if allowed {
				d.RetryAfter = 0 // it was booked ahead
			}
			all = append(all, d)
		}
	}
	httplimit.AllFields.Write(h, time.Now(), all...)
	if !allowed && retry > 0 {
		problem.SetRetryAfter(h, retry)
	}
}

// denial returns the problem document of a denial, which also has the members of body.
func denial(body object, answers []rules.Answer) object {
	var violated []string
	detail := ""
	for i := range answers {
		a := &answers[i]
		if a.Allowed {
			continue
		}
		if a.Banned {
			detail = "The key is banned."
		}
		for _, d := range a.Decisions {
			if !d.Allowed() {
				violated = append(violated, d.Limit.Name())
			}
		}
	}
	if detail == "" {
		detail = "Exceeded: " + strings.Join(violated, ", ") + "."
	}
	return problemMembers(detail, violated, body)
}

// problemMembers puts the members of a problem document before those of body.
func problemMembers(detail string, violated []string, body object) object {
	p := problem.Exceeded(http.StatusTooManyRequests, detail, violated).JSON()
	return append(append(p[:len(p)-1], ','), body[1:]...)
}

func replyJSON(w http.ResponseWriter, body object) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body.end()) //nolint:gosec // JSON is no HTML; the client may have disconnected
}

// Reply answers with v as JSON.
func Reply(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		replyJSON(w, text[:len(text)-1])
	}
	return err
}
