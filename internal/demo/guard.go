package demo

import (
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/charts"
	"github.com/headgate/headgate/internal/loopback"
)

// maxBody bounds the body of a request, at ten times the longest that makes sense.
const maxBody = 4 << 10

// guarded rejects requests from pages of other sites, which a browser would send here, and for
// host names of others that point to this machine.
func guarded(h http.Handler, host string) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "the request comes from a page of another site; "+
			"only the page of the demo may send it")
	}))
	h = cross.Handler(http.MaxBytesHandler(h, maxBody))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		charts.Protect(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		if !known(r.Host, host) {
			refuse(w, http.StatusMisdirectedRequest,
				"the host is "+strconv.Quote(r.Host)+"; want the address that the demo printed")
			return
		}
		if r.ContentLength > maxBody {
			refuse(w, http.StatusRequestEntityTooLarge,
				"the body is too large; want at most "+strconv.Itoa(maxBody)+" bytes")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// known reports whether a page that is served on the host bound may respond to a request for the
// host asked. Anyone may own a name that is not known.
func known(asked, bound string) bool {
	if loopback.IsHost(asked) {
		return true
	}
	if bound == "" || loopback.IsHost(bound) {
		return false
	}
	name := loopback.Hostname(asked)
	_, err := netip.ParseAddr(name)
	machine, _ := os.Hostname()
	return err == nil || name == strings.ToLower(bound) ||
		name != "" && name == strings.ToLower(machine)
}
