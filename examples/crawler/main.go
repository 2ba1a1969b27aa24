// Crawler fetches pages from two queues, one of fast pages and one of slow ones. It sends each
// host at most 40 requests a second, evenly, and downloads at most 200,000 bytes a second in
// all. It starts two hosts to crawl.
//
//	go run ./examples/crawler
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

const (
	hostRate  = 40      // requests a second to each host
	bandwidth = 200_000 // bytes a second from all of them
	burst     = 2048    // bytes at once: few, so that long pages and short ones take turns
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	hosts := []*host{startHost(), startHost()}
	defer func() {
		for _, h := range hosts {
			h.Close()
		}
	}()
	c, err := newCrawler(headgate.NewMemory(), http.DefaultTransport)
	if err != nil {
		return err
	}
	begun := time.Now()
	reports, err := c.crawl(ctx,
		queue{name: "fast", urls: pages(hosts, "fast", 20)},
		queue{name: "slow", urls: pages(hosts, "slow", 6)})
	if err != nil {
		return err
	}
	total := 0
	for _, r := range reports {
		fmt.Printf("%s: %d pages, %d bytes\n", r.name, r.pages, r.bytes)
		total += r.bytes
	}
	fmt.Println("each host was asked in turn:", hosts[0].politely() && hosts[1].politely())
	least := time.Duration(total-burst) * time.Second / bandwidth
	fmt.Println("within the bandwidth:", time.Since(begun) >= least)
	return nil
}

// pages returns the URLs of n pages of each host.
func pages(hosts []*host, kind string, n int) []string {
	var urls []string
	for i := range n {
		for _, h := range hosts {
			urls = append(urls, fmt.Sprintf("%s/%s/%d", h.URL, kind, i))
		}
	}
	return urls
}

// newCrawler makes a crawler that sends its requests by base. With a store in Redis, several share
// the limits.
func newCrawler(store headgate.Store, base http.RoundTripper) (*crawler, error) {
	hosts, err := headgate.NewLimiter(store, headgate.PerSecond(hostRate).Burst(1).Named("host"))
	if err != nil {
		return nil, err
	}
	limit := headgate.PerSecond(bandwidth).Burst(burst).Named("bandwidth")
	bytes, err := headgate.NewLimiter(store, limit)
	if err != nil {
		return nil, err
	}
	transport, err := httplimit.NewTransport(hosts, httplimit.TransportOptions{Base: base})
	if err != nil {
		return nil, err
	}
	return &crawler{client: &http.Client{Transport: transport}, bytes: bytes}, nil
}
