//go:build clients

package clients

import "testing"

// The middleware for the frameworks of Node works with the real server.
func TestNodeMiddleware(t *testing.T) {
	url := startServer(t, "rules: [{name: login, key: ip, limits: 5/h}]")
	run(t, node, []string{"HEADGATE_URL=" + url}, "node", "--test", "middleware.test.mjs")
}
