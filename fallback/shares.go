package fallback

import (
	"maps"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// shares are those of limits that were asked for before, for one number of instances: a new one
// makes a new map.
type shares struct{ known atomic.Pointer[known] }

type known struct {
	instances int
	of        map[headgate.Limit]headgate.Limit
}

// mostShares bounds what is remembered, lest limits made anew for each request do it for
// ever.
const mostShares = 1000

// of is the share of l for so many instances.
func (s *shares) of(l headgate.Limit, instances int) headgate.Limit {
	last := s.known.Load()
	if last == nil || last.instances != instances {
		last = &known{instances: instances}
	}
	if share, ok := last.of[l]; ok {
		return share
	}
	share := l.Share(instances)
	if len(last.of) < mostShares {
		next := &known{instances, make(map[headgate.Limit]headgate.Limit, len(last.of)+1)}
		maps.Copy(next.of, last.of)
		next.of[l] = share
		s.known.Store(next) // or another one's is kept
	}
	return share
}
