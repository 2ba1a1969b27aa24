package main

import (
	"slices"
	"strings"
	"testing"
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

// Neither queue keeps the other one waiting: many fast pages come between the first slow
// one and the last, and slow pages are done long before the fast ones are.
func TestQueuesAreFair(t *testing.T) {
	h := startHost()
	defer h.Close()
	c, err := newCrawler(headgate.NewMemory())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 100)
	c.done = func(url string) { done <- url }
	begun := time.Now()
	reports, err := c.crawl(t.Context(), queue{"fast", pages([]*host{h}, "fast", 40)}, queue{"slow", pages([]*host{h}, "slow", 10)})
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
	if took := time.Since(begun); took < 49*time.Second/hostRate || took > 3*time.Second {
		t.Errorf("50 pages took %s; want 49/%d s and little more", took, hostRate)
	}
}

// A page that is not there ends the crawl, by its error.
func TestMissingPage(t *testing.T) {
	h := startHost()
	defer h.Close()
	c, err := newCrawler(headgate.NewMemory())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.crawl(t.Context(), queue{"fast", []string{h.URL + "/nowhere"}}); err == nil || !strings.HasSuffix(err.Error(), "/nowhere: 404 Not Found") {
		t.Errorf("error %v", err)
	}
}
