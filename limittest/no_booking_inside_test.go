package limittest

import (
	"context"
	"slices"
	"testing"

	"github.com/headgate/headgate"
)

// halfBooking is a store that does not book ahead. With MaxWait, it charges or denies what comes
// alone (a group of 0), or what comes as a group of that many.
type halfBooking struct {
	headgate.Store

	charges, denies func(group int) bool
}

func (s halfBooking) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	ds := make([]headgate.Decision, 1)
	err := s.takeAll(ctx, []headgate.Request{r}, ds, 0)
	return ds[0], err
}

func (s halfBooking) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	return s.takeAll(ctx, rs, ds, len(rs))
}

func (s halfBooking) takeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision, group int,
) error {
	waits := slices.ContainsFunc(rs, func(r headgate.Request) bool { return r.MaxWait > 0 })
	if !waits {
		return s.Store.TakeAll(ctx, rs, ds)
	}
	if s.denies(group) {
		for i := range ds {
			ds[i] = headgate.Decision{RetryAfter: rs[i].MaxWait + 1}
		}
		return nil
	}
	if s.charges(group) {
		if err := s.Store.TakeAll(ctx, rs, ds); err != nil {
			return err
		}
	}
	return headgate.ErrNoBooking
}

// The suite finds a store that charges or decides what it does not book.
func TestStoresThatHalfBook(t *testing.T) {
	never := func(int) bool { return false }
	alone := func(group int) bool { return group == 0 }
	together := func(group int) bool { return group > 1 }
	for name, s := range map[string]halfBooking{
		"none":                {charges: never, denies: never},
		"charges in Take":     {charges: alone, denies: never},
		"charges in TakeAll":  {charges: together, denies: never},
		"denies in TakeAll":   {charges: never, denies: together},
		"denies each TakeAll": {charges: never, denies: func(group int) bool { return group > 0 }},
	} {
		s.Store = headgate.NewMemory()
		if fault := withoutBooking(t, s); (fault == "") != (name == "none") {
			t.Errorf("%s: %q", name, fault)
		}
	}
}
