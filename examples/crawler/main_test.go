package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

func Example() {
	main()
	// Output:
	// fast: 40 pages, 40000 bytes
	// slow: 12 pages, 60000 bytes
	// each host was asked in turn: true
	// within the bandwidth: true
}

// pipes is a network without a machine, so that a server in a bubble has the bubble's time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

// Neither queue keeps the other one waiting: many fast pages come between the first slow one and
// the last, and slow pages are done long before the fast ones are. The whole limit of the host is
// used.
func TestQueuesAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{Server: &httptest.Server{URL: "http://host"}, begun: time.Now()}
		network := make(pipes)
		server := &http.Server{Handler: h.pages(), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(network) }()
		defer server.Close()
		base := &http.Transport{DialContext: network.dial}
		defer base.CloseIdleConnections()
		c, err := newCrawler(headgate.NewMemory(), base)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan string, 100)
		c.done = func(url string) { done <- url }
		hosts := []*host{h}
		reports, err := c.crawl(t.Context(),
			queue{"fast", pages(hosts, "fast", 40)}, queue{"slow", pages(hosts, "slow", 10)})
		if err != nil || reports[0].pages != 40 || reports[1].pages != 10 {
			t.Fatalf("%+v, %v", reports, err)
		}
		close(done)
		var order []string
		for url := range done {
			order = append(order, strings.Split(url, "/")[3])
		}
		firstSlow := slices.Index(order, "slow")
		fastBetween := strings.Count(strings.Join(order[firstSlow:], " "), "fast")
		if firstSlow > 20 || fastBetween < 20 {
			t.Errorf("done in the order %q", order)
		}
		took := time.Since(h.begun)
		if took < 49*time.Second/hostRate || took > 49*time.Second/hostRate+200*time.Millisecond {
			t.Errorf("50 pages took %s; want 49/%d s and the time of one page", took, hostRate)
		}
		if !h.politely() {
			t.Errorf("the host was asked at %v", h.asked)
		}
	})
}

// A page that is not there ends the crawl, by its error.
func TestMissingPage(t *testing.T) {
	h := startHost()
	defer h.Close()
	c, err := newCrawler(headgate.NewMemory(), http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.crawl(t.Context(), queue{"fast", []string{h.URL + "/nowhere"}}); err == nil || !strings.HasSuffix(err.Error(), "/nowhere: 404 Not Found") {
		t.Errorf("error %v", err)
	}
}
