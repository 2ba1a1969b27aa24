package proxy

import (
	"net/http"
	"strings"
)

// dropTunnels removes the fields that ask for another protocol than websocket. Requests inside it
// would not be limited.
func dropTunnels(h http.Header) {
	if to := h["Upgrade"]; len(to) != 1 || !strings.EqualFold(to[0], "websocket") {
		delete(h, "Upgrade")
	}
	delete(h, "Http2-Settings")
}
