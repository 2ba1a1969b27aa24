package replay

import (
	"bytes"
	"net/netip"
	"strings"
)

// byRequests makes a key of each client, method, host and target, by which rules decide.
var byRequests = By{[]part{{kind: byRequest}}}

// request returns what rules decide by, or nothing if there is no address or request.
func (k *keyer) request(e *entry) []byte {
	addr, method := present(e.addr), present(e.method)
	at, ok := netip.Addr{}, false
	if len(addr) > 0 {
		at, ok = readAddress(addr)
	}
	if !ok || len(method) == 0 {
		return nil
	}
	target := e.target
	if i := bytes.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	k.tmp = append(at.AppendTo(k.tmp[:0]), 0)
	k.tmp = append(append(k.tmp, method...), 0)
	k.tmp = append(append(k.tmp, present(e.host)...), 0)
	return append(k.tmp, target...)
}

// Request is a request of a log.
type Request struct {
	Client               netip.Addr
	Method, Host, Target string // the target without its query

	client uint32 // an address, by which it is counted; of IPv6, its /64 network
}

// readRequest reads what [keyer.request] has written.
func readRequest(key string, clients *keyIDs) *Request {
	parts := strings.SplitN(key, "\x00", 4)
	at, _ := netip.ParseAddr(parts[0])
	var k keyer
	return &Request{at, parts[1], parts[2], parts[3], clients.id(k.network(at))}
}
