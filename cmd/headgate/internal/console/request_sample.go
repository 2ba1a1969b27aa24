package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// The bounds of what is known about denied requests.
const (
	keptRequests  = 64 // of a rule
	noted         = 10 // of a rule in a second
	maxText       = 120
	shownTexts    = 3 // of each kind
	shownRequests = 5 // keys of a rule with their requests
)

// requestSample holds the latest requests that a rule has denied, in a ring. It begins when the
// console gets a viewer.
type requestSample struct {
	mu     sync.Mutex
	second int64
	taken  int // in this second
	next   int
	ring   []sampledRequest
}

type sampledRequest struct{ key, method, path, agent string }

// add notes a request.
func (l *requestSample) add(now time.Time, key string, q *rules.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); second != l.second {
		l.second, l.taken = second, 0
	}
	if l.taken == noted {
		return
	}
	l.taken++
	r := sampledRequest{
		strings.Clone(cutKey(key)), cutText(q.Method), cutText(q.Path),
		cutText(q.Header.Get("User-Agent")),
	}
	if len(l.ring) < keptRequests {
		l.ring = append(l.ring, r)
		return
	}
	l.ring[l.next] = r
	l.next = (l.next + 1) % keptRequests
}

// cutText returns a copy of the beginning of a text.
func cutText(text string) string {
	cut := text[:min(len(text), maxText)]
	return strings.ToValidUTF8(strings.Clone(cut), "")
}

// requestsSeen says what the noted requests of a key were: how often each text was there.
type requestsSeen struct {
	Requests int            `json:"requests"`
	Methods  map[string]int `json:"methods"`
	Paths    map[string]int `json:"paths"`
	Agents   map[string]int `json:"agents"`
}

// seen returns what is noted of keys.
func (l *requestSample) seen(keys []deniedKey) {
	if len(keys) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range keys[:min(len(keys), shownRequests)] {
		all := requestsSeen{0, map[string]int{}, map[string]int{}, map[string]int{}}
		for _, r := range l.ring {
			if r.key == keys[i].Key {
				all.Requests++
				all.Methods[r.method]++
				all.Paths[r.path]++
				all.Agents[r.agent]++
			}
		}
		if all.Requests > 0 {
			keys[i].Seen = all.shown()
		}
	}
}

// join adds what another instance has seen.
func (s *requestsSeen) join(other *requestsSeen) *requestsSeen {
	if s == nil || other == nil {
		return cmp.Or(s, other)
	}
	sum := requestsSeen{
		s.Requests + other.Requests,
		maps.Clone(s.Methods), maps.Clone(s.Paths), maps.Clone(s.Agents),
	}
	for _, both := range [][2]map[string]int{
		{sum.Methods, other.Methods}, {sum.Paths, other.Paths}, {sum.Agents, other.Agents},
	} {
		for text, n := range both[1] {
			both[0][text] += n
		}
	}
	return sum.shown()
}

// shown keeps the most frequent texts.
func (s *requestsSeen) shown() *requestsSeen {
	for _, texts := range []map[string]int{s.Methods, s.Paths, s.Agents} {
		names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
			return cmp.Or(cmp.Compare(texts[b], texts[a]), cmp.Compare(a, b))
		})
		for _, name := range names[min(len(names), shownTexts):] {
			delete(texts, name)
		}
	}
	return s
}
