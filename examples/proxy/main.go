// Proxy limits each client address behind a reverse proxy, which sends the address in
// X-Forwarded-For. Only the named proxies are trusted.
//
//	go run ./examples/proxy -trust 127.0.0.0/8,::1/128
//	curl -i -H 'X-Forwarded-For: 192.0.2.1' localhost:8080
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func main() {
	trust := flag.String("trust", "127.0.0.0/8,::1/128", "the networks of your proxies")
	flag.Parse()
	h, err := newHandler(*trust)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(trust string) (http.Handler, error) {
	var proxies []netip.Prefix
	for text := range strings.SplitSeq(trust, ",") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		proxies = append(proxies, p)
	}
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(10).Burst(20))
	if err != nil {
		return nil, err
	}
	address, err := httplimit.ClientAddress(httplimit.AddressOptions{Trusted: proxies})
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(limiter, httplimit.Options{Key: httplimit.Key(address)})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(hello)), nil
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
