package cli

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// jsonKey is a listed key as JSON. Times are in seconds.
type jsonKey struct {
	Key string `json:"key"`

	// Of a limit that is known.
	*jsonLimit

	// Of others: what was used when the key was last charged, of a bucket as a fraction.
	LimitName string   `json:"limit_name,omitempty"`
	Used      *int64   `json:"used,omitempty"`
	UsedShare *float64 `json:"used_share,omitempty"`
	Charged   string   `json:"charged,omitempty"`

	Permits int64 `json:"permits_in_use,omitempty"`
}

func (k *listedKey) json() jsonKey {
	j := jsonKey{Key: k.Key}
	switch {
	case k.known:
		l := newJSONLimit(k.decision)
		j.jsonLimit = &l
	case k.Limit == "":
		j.Permits = k.Used
	default:
		j.LimitName, j.Charged = k.Limit, k.Changed.UTC().Format(time.RFC3339Nano)
		if share, ok := k.share(); ok {
			j.UsedShare = &share
		} else {
			j.Used = &k.Used
		}
	}
	return j
}

// share returns which fraction of a bucket was used.
func (k *listedKey) share() (float64, bool) {
	return float64(k.Used) / float64(max(k.Full, 1)), k.Full > 0
}

func (k *listedKey) limitText() string {
	switch {
	case k.known:
		return k.limit.String()
	case k.Limit == "":
		return "permits"
	}
	return command.Printable(k.Limit)
}

// state is the state of k in words.
func (k *listedKey) state() string {
	share, bucket := k.share()
	at := k.Changed.UTC().Format(time.DateTime)
	switch {
	case k.known:
		return remaining(k.decision)
	case k.Limit == "":
		return command.Thousands(k.Used) + " in use"
	case bucket:
		return command.Percent(share) + " used at " + at
	}
	return command.Thousands(k.Used) + " used at " + at
}

func remaining(d headgate.Decision) string {
	text := fmt.Sprintf("%s of %s remaining", command.Thousands(d.Remaining),
		command.Thousands(d.Limit.Capacity()))
	if !d.Allowed() {
		text += ", retry " + after(d.RetryAfter)
	}
	return text
}
