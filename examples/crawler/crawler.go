package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/gate"
)

// crawler fetches pages.
type crawler struct {
	client *http.Client      // keeps the limit of each host
	bytes  *headgate.Limiter // limits the whole crawler
	done   func(url string)  // called for each page, by many goroutines; may be nil
}

// queue is a list of pages to fetch.
type queue struct {
	name string
	urls []string
}

// report counts what was fetched from a queue.
type report struct {
	name  string
	pages int
	bytes int
}

// workers is how many pages of a queue are fetched at a time.
const workers = 4

// crawl fetches the pages of all queues. Each queue has its own workers, so slow pages do not
// delay fast ones. Callers that wait for a host or for the bandwidth are served first come,
// first served, so many fast pages do not delay slow ones.
func (c *crawler) crawl(ctx context.Context, queues ...queue) ([]report, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reports := make([]report, len(queues))
	var all sync.WaitGroup
	for i, q := range queues {
		all.Go(func() {
			r, err := c.empty(ctx, q)
			if err != nil {
				stop(err)
			}
			reports[i] = r
		})
	}
	all.Wait()
	return reports, context.Cause(ctx)
}

// empty fetches the pages of one queue.
func (c *crawler) empty(ctx context.Context, q queue) (report, error) {
	urls := make(chan string, len(q.urls))
	for _, url := range q.urls {
		urls <- url
	}
	close(urls)
	r := report{name: q.name}
	var failed error
	var mu sync.Mutex
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for url := range urls {
				n, err := c.fetch(ctx, url)
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, err)
					mu.Unlock()
					return
				}
				r.pages, r.bytes = r.pages+1, r.bytes+n
				mu.Unlock()
				if c.done != nil {
					c.done(url)
				}
			}
		})
	}
	all.Wait()
	return r, failed
}

// fetch reads a page and returns its length.
func (c *crawler) fetch(ctx context.Context, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, answer.Status)
	}
	bandwidth := gate.NewKeyWaiter(c.bytes, "download")
	n, err := io.Copy(io.Discard, gate.NewReader(ctx, answer.Body, bandwidth))
	return int(n), err
}
