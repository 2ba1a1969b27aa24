package replay

import "time"

// Bounds of a Detail.
const (
	DetailBars   = 500  // of its timeline; fewer with more than three limits
	DetailKeys   = 1000 // listed for each limit
	DetailGroups = 15   // paths, methods or statuses
)

// Detail has the denied requests of a [Report] over time, and by key, path, method and status. Its
// slices by limit are in the order of [Config.Limits]. All counts are exact.
type Detail struct {
	Timeline        *DetailTimeline `json:"timeline"`          // nil without requests
	Keys            [][]DeniedKey   `json:"keys"`              // by limit; the most denied first
	DeniedKeysTotal []int64         `json:"denied_keys_total"` // by limit; more than Keys lists
	Paths           []Group         `json:"paths"`             // nil if the logs have none
	Methods         []Group         `json:"methods"`           // nil if the logs have none
	Statuses        []Group         `json:"statuses"`          // nil if the logs have none
	Evidence        []Evidence      `json:"-"`                 // in the order of Config.Evidence
}

// DetailTimeline is the number of requests over time, in at most [DetailBars] bars. Bars begin at
// multiples of their width since the Unix epoch.
type DetailTimeline struct {
	From     time.Time `json:"from"`
	WidthS   int64     `json:"width_s"` // seconds
	Requests []int64   `json:"requests"`
	Denied   [][]int64 `json:"denied"` // by limit and bar
}

// DeniedKey is a key that a limit denied.
type DeniedKey struct {
	Key      LogKey    `json:"key"`
	Requests int64     `json:"requests"` // of this key
	Denied   int64     `json:"denied"`   // of those
	First    time.Time `json:"first"`    // denial
	Last     time.Time `json:"last"`     // denial

	// DeniedRunS is the longest time, in seconds, from a denial to a later one without a granted
	// request of the key between them. 0 stands for denials at one time.
	DeniedRunS float64 `json:"denied_run_s"`

	// RetryAfterS is how many seconds after the end of this run a request would be granted.
	RetryAfterS float64 `json:"retry_after_s"`
}

// Group is the requests of one path, method or status. A name of "(none)" stands for requests
// without one, "(other)" for all that are not listed.
type Group struct {
	Name     LogKey  `json:"name"`
	Requests int64   `json:"requests"`
	Denied   []int64 `json:"denied"` // by limit
}
