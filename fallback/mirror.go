package fallback

import (
	"context"

	"github.com/headgate/headgate"
)

// mirror charges this instance's share with what the store charged, or refunds it. So when the
// store fails, the instance has what is left of its share, and not a fresh one. A charge of more
// than the share holds, forced or not, empties it. An error of the local store is ignored: then the
// share is fuller than it should be, but still no more than a share.
func (s *Store) mirror(ctx context.Context, r *headgate.Request) {
	if s.options.Mode != Local || r.Cost == 0 {
		return
	}
	own := headgate.Request{
		Key: r.Key, Limit: s.shares.of(r.Limit, s.instances()), Cost: r.Cost, At: r.At,
	}
	d, err := s.options.Local.Take(ctx, own)
	if err == nil && !d.Allowed() && d.Remaining > 0 {
		own.Cost = d.Remaining
		_, _ = s.options.Local.Take(ctx, own)
	}
}
