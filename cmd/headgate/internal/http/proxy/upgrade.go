package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// dropTunnels removes the fields that ask for another protocol than websocket. Requests inside it
// would not be limited.
func dropTunnels(h http.Header) {
	if !isWebsocket(h) {
		delete(h, "Upgrade")
	}
	delete(h, "Http2-Settings")
}

// isWebsocket reports whether h asks for a websocket.
func isWebsocket(h http.Header) bool {
	to := h["Upgrade"]
	return len(to) == 1 && strings.EqualFold(to[0], "websocket") &&
		httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade")
}
