package chaos

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// networkFaults befall what lies between: the server has decided, and its answer is
// late, comes in part, or never.
func networkFaults() []fault {
	return []fault{
		{name: "answers after the deadline", build: proxied(late), sees: []string{"no answer in time"}},
		{name: "cut in the middle of an answer", build: proxied(cut), sees: []string{"EOF"}},
		{name: "answers vanish", build: proxied(vanish), sees: []string{"no answer in time"}},
	}
}

func late(p *redistest.Proxy)   { p.Delay(deadline + 300*time.Millisecond) }
func cut(p *redistest.Proxy)    { p.Cut(5) }
func vanish(p *redistest.Proxy) { p.Swallow() }

func proxied(harm func(*redistest.Proxy)) func(t *testing.T) *scene {
	return func(t *testing.T) *scene {
		p := redistest.StartProxy(t, redistest.Start(t).Addr)
		return &scene{
			open:   openURL(t, "redis://"+p.Addr),
			inject: func(<-chan struct{}) { harm(p) },
			heal:   p.Heal,
			felt: func() error {
				if p.Failed() == 0 {
					return errors.New("no answer was hit")
				}
				return nil
			},
		}
	}
}
