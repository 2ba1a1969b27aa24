package redisstore

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/headgate/headgate"
)

// hasTurn says whether r may be granted ahead, or taken back.
func hasTurn(r headgate.Request) bool { return r.MaxWait > 0 || r.Ticket != 0 }

// together is what is granted in one call.
type together struct {
	parts uint32
	link  uint64 // by which those are known that may not be taken back
}

func newTogether(rs []headgate.Request) (t together) {
	for _, r := range rs {
		if r.Cost > 0 {
			t.parts++
		}
	}
	return t
}

// mayTakeBack is set beside the number of parts.
const mayTakeBack = 1 << 31

// ticket is by what the grant of r is known, see turns.lua. What may neither wait nor be taken
// back has its turn at once, whatever becomes of the others.
func (t *together) ticket(r headgate.Request) string {
	ticket, parts := r.Ticket, uint32(0)
	if hasTurn(r) && r.Cost > 0 {
		parts = t.parts
	}
	if r.Ticket != 0 {
		parts |= mayTakeBack
	} else if parts > 1 {
		if t.link == 0 {
			t.link = rand.Uint64() | 1
		}
		ticket = t.link
	}
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, ticket), parts))
}
