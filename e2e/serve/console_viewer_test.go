package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// counts is what a rule has decided, or decides in a second.
type counts struct {
	Name         string  `json:"name"`
	Mode         string  `json:"mode"`
	Allowed      float64 `json:"allowed"`
	Denied       float64 `json:"denied"`
	ShadowDenied float64 `json:"shadow_denied"`
	Failed       float64 `json:"error"`
	DeniedKeys   []struct {
		Key    string `json:"key"`
		Denied int64  `json:"denied"`
	} `json:"denied_keys"`
}

// state is what the console tells each second.
type state struct {
	At        int64      `json:"at"` // when the instance read its counters, in milliseconds
	Instances []struct { // itself first
		Name string  `json:"name"`
		At   int64   `json:"at"`
		Rate float64 `json:"decisions_per_s"` // since its reading before
	} `json:"instances"`
	Rules []counts `json:"rules"`

	came time.Time
}

func (s state) rule(name string) counts {
	for _, r := range s.Rules {
		if r.Name == name {
			return r
		}
	}
	return counts{}
}

// viewer looks at the console of a server.
type viewer struct {
	mu     sync.Mutex
	states []state
}

// watch looks at the console until the test ends.
func watch(t *testing.T, c *client) *viewer {
	t.Helper()
	v := &viewer{}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/console/api/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.web.Do(r) //nolint:bodyclose // closed below
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("events: status %d", response.StatusCode)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		defer response.Body.Close()
		v.read(t, response.Body)
	}()
	return v
}

func (v *viewer) read(t *testing.T, events io.Reader) {
	lines := bufio.NewReader(events)
	for event := ""; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch {
		case name == "event":
			event = value
		case name == "data" && event == "state":
			s := state{came: time.Now()}
			if err := json.Unmarshal([]byte(value), &s); err != nil {
				t.Errorf("a state of the console: %v: %.200s", err, value)
				return
			}
			v.mu.Lock()
			v.states = append(v.states, s)
			v.mu.Unlock()
		}
	}
}

// seen returns the states so far.
func (v *viewer) seen() []state {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]state(nil), v.states...)
}

// readings returns the first state of each reading of the counters after some time.
func (v *viewer) readings(began int64) (all []state) {
	for _, s := range v.seen() {
		if s.At > began && (len(all) == 0 || s.At > all[len(all)-1].At) {
			all = append(all, s)
		}
	}
	return all
}

// last returns the newest state.
func (v *viewer) last() state {
	if all := v.seen(); len(all) > 0 {
		return all[len(all)-1]
	}
	return state{}
}

func (s state) instances() map[string]bool {
	names := map[string]bool{}
	for _, i := range s.Instances {
		names[i.Name] = true
	}
	return names
}
