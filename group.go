package headgate

import "context"

// AllowAll asks store for several requests together, of whatever keys, limits and costs:
// per user, per tenant and for all; ten a second and a thousand a day. All are granted,
// or none is charged. The decision speaks for all of them: if they are refused, its Limit
// is the one that refused for the longest (of limits of one name for several keys, i in
// the order of rs tells which), and after its RetryAfter all of them would be granted if nobody
// else came. It costs one round trip in a store across a network; see there for keys
// that lie on several servers.
//
// i is the place in rs of the request that decided. Without requests, everything is
// allowed by [Unlimited], and i is -1.
func AllowAll(ctx context.Context, store Store, rs ...Request) (d Decision, i int, err error) {
	if len(rs) == 0 {
		return unlimited, -1, nil
	}
	if err := validateStore(store); err != nil {
		return Decision{}, 0, err
	}
	ds := make([]Decision, len(rs))
	if err := store.TakeAll(ctx, rs, ds); err != nil {
		return Decision{}, 0, err
	}
	for j := range ds {
		if stricter(ds[j], ds[i]) {
			i = j
		}
	}
	return ds[i], i, nil
}
