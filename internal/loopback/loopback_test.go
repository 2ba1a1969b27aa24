package loopback

import "testing"

func TestIsHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.9.9.9:1": true, "::1": true, "[::1]": true, "[::1]:80": true,
		"": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "192.0.2.1": false, "localhost.": false,
		"127.0.0.1.stranger.example": false, "localhost.stranger.example:80": false, "[127.0.0.1.stranger.example]": false,
		"127.1": false, "off": false,
	} {
		if got := IsHost(host); got != want {
			t.Errorf("%q: %t, want %t", host, got, want)
		}
	}
}
