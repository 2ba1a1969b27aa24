// Package report writes the result of a replay or a sizing as one HTML file.
package report

import (
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// Version is the version of [Data]. It changes if a field is removed or changes its meaning.
const Version = 5

// Kinds of reports.
const (
	KindReplay = "replay" // of limits that were given
	KindSize   = "size"   // of the limits that were proposed, and the one with reserve
)

// MaxDataBytes is the maximum size of a Data as JSON and HTML. It keeps the page below 1 MB.
const MaxDataBytes = 750_000

// Data is what a page shows. Its JSON is in the page.
type Data struct {
	Version int                `json:"version"`
	Made    time.Time          `json:"made"`
	Command string             `json:"command"` // as typed
	Kind    string             `json:"kind"`    // KindReplay or KindSize
	Size    *replay.SizeReport `json:"size"`    // at the rates of the limits
	Replay  *replay.Report     `json:"replay"`  // with a Detail
	Limits  []Limit            `json:"limits"`  // one for each of Replay.Limits
}

// Limit is a limit as texts to copy.
type Limit struct {
	Name  string `json:"name"`  // of the limit, or of proposals: balanced, tight; may be empty
	Limit string `json:"limit"` // as headgate.ParseLimit reads it
	Go    string `json:"go"`    // an expression
	YAML  string `json:"yaml"`  // a file for headgate serve
}
