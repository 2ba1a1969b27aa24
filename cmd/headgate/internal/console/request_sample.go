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

// A sampledRequest has the address of its client, and the last one that X-Forwarded-For names if
// that is not from a trusted proxy.
type sampledRequest struct {
	key, method, path, agent, client, forwarded string

	permit bool // it lacked a permit
}

// add notes a request.
func (l *requestSample) add(now time.Time, key string, q *rules.Request, permit bool) {
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
		cutText(q.Header.Get("User-Agent")), clientOf(q), cutText(forwarded(q)), permit,
	}
	if len(l.ring) < keptRequests {
		l.ring = append(l.ring, r)
		return
	}
	l.ring[l.next] = r
	l.next = (l.next + 1) % keptRequests
}

// clientOf returns the address of the client, or "" if it is not known.
func clientOf(q *rules.Request) string {
	if !q.Client.IsValid() {
		return ""
	}
	return q.Client.String()
}

// forwarded returns the last address in X-Forwarded-For that is not that of the client, or "". A
// trusted proxy makes an address in it the client.
func forwarded(q *rules.Request) string {
	list := strings.Split(strings.Join(q.Header["X-Forwarded-For"], ","), ",")
	last := strings.TrimSpace(list[len(list)-1])
	for _, address := range list {
		if strings.TrimSpace(address) == q.Client.String() {
			return ""
		}
	}
	return last
}

// cutText returns a copy of the beginning of a text.
func cutText(text string) string {
	cut := text[:min(len(text), maxText)]
	return strings.ToValidUTF8(strings.Clone(cut), "")
}

// requestsSeen says what the noted requests of a key were: how often each text was there.
type requestsSeen struct {
	Requests  int            `json:"requests"`
	Permits   int            `json:"permits"` // of Requests, those that lacked a permit
	Methods   map[string]int `json:"methods"`
	Paths     map[string]int `json:"paths"` // or the beginnings of many
	Agents    map[string]int `json:"agents"`
	Clients   map[string]int `json:"clients"`   // by address
	Forwarded map[string]int `json:"forwarded"` // addresses that have no effect

	Kinds texts `json:"kinds,omitzero"` // for the page
}

// texts are numbers of distinct texts.
type texts struct {
	Paths     int `json:"paths"`
	Agents    int `json:"agents"`
	Clients   int `json:"clients"`
	Forwarded int `json:"forwarded"`
}

// seen returns what is noted of keys.
func (l *requestSample) seen(keys []deniedKey) {
	if len(keys) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range keys[:min(len(keys), shownRequests)] {
		all := newSeen()
		for _, r := range l.ring {
			if r.key != keys[i].Key {
				continue
			}
			all.Requests++
			all.Methods[r.method]++
			all.Paths[r.path]++
			all.Agents[r.agent]++
			if r.permit {
				all.Permits++
			}
			if r.client != "" {
				all.Clients[r.client]++
			}
			if r.forwarded != "" {
				all.Forwarded[r.forwarded]++
			}
		}
		if all.Requests > 0 {
			keys[i].Seen = all
		}
	}
}

func newSeen() *requestsSeen {
	return &requestsSeen{
		Methods: map[string]int{}, Paths: map[string]int{}, Agents: map[string]int{},
		Clients: map[string]int{}, Forwarded: map[string]int{},
	}
}

func (s *requestsSeen) maps() []map[string]int {
	return []map[string]int{s.Methods, s.Paths, s.Agents, s.Clients, s.Forwarded}
}

// join adds what another instance has seen. Each sends all texts, so that they can be counted.
func (s *requestsSeen) join(other *requestsSeen) *requestsSeen {
	if s == nil || other == nil {
		return cmp.Or(s, other)
	}
	sum := newSeen()
	sum.Requests, sum.Permits = s.Requests+other.Requests, s.Permits+other.Permits
	for _, one := range []*requestsSeen{s, other} {
		for i, texts := range one.maps() {
			for text, n := range texts {
				sum.maps()[i][text] += n
			}
		}
	}
	return sum
}

// shown counts the texts, and keeps the most frequent ones.
func (s *requestsSeen) shown() *requestsSeen {
	if s == nil {
		return nil
	}
	sum := newSeen().join(s)
	sum.Kinds = texts{len(s.Paths), len(s.Agents), len(s.Clients), len(s.Forwarded)}
	if len(sum.Paths) > shownTexts {
		sum.Paths = byBeginning(sum.Paths)
	}
	for _, texts := range sum.maps() {
		names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
			return cmp.Or(cmp.Compare(texts[b], texts[a]), cmp.Compare(a, b))
		})
		for _, name := range names[min(len(names), shownTexts):] {
			delete(texts, name)
		}
	}
	return sum
}

// byBeginning joins paths that have the first segment in common: /search/*.
func byBeginning(paths map[string]int) map[string]int {
	joined := map[string]int{}
	for path, n := range paths {
		first, _, isLonger := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if isLonger {
			path = "/" + first + "/*"
		}
		joined[path] += n
	}
	return joined
}
