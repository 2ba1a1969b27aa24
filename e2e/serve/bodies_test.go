package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

var proxyListens = regexp.MustCompile(`msg=listening listener=proxy address=(\S+)`)

// endless is a body that stops before its end.
type endless struct {
	io.Reader

	stopped chan<- struct{}
	ended   <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	e.stopped <- struct{}{}
	<-e.ended
	return 0, io.ErrUnexpectedEOF
}

// Connections of HTTP/2 whose bodies do not end take a bounded part of the memory of a proxy that
// reads bodies, and others are answered.
func TestBodiesThatDoNotEnd(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer app.Close()
	dir, a := t.TempDir(), newAuthority(t)
	a.sign(t, dir, 1)
	s := serve(t, fmt.Sprintf(`
tls: {cert: %s/tls.crt, key: %s/tls.key}
rules: [{name: tokens, limits: 1000000000/d, cost: {tokens: {estimate: 10}}}]
`, dir, dir), "--proxy", "127.0.0.1:0="+app.URL)
	url := "https://" + proxyListens.FindStringSubmatch(s.log.String())[1]
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	connection := func() *http.Client {
		return &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DialContext:     (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		}}
	}
	heap := func() int {
		res, err := connection().Get("https://" + s.debug + "/debug/pprof/heap?debug=1&gc=1") //nolint:noctx // bounded
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return heapOf(t, string(text))
	}
	idle, live := s.rss(t), heap()
	const size, streams = 1_000_000, 100
	stopped, ended := make(chan struct{}, 4*streams), make(chan struct{})
	defer close(ended)
	for n := range 4 {
		c := connection()
		for range streams {
			go func() {
				body := &endless{strings.NewReader(strings.Repeat("x", size-1)), stopped, ended}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
				if err != nil {
					return
				}
				r.ContentLength = size
				if res, err := c.Do(r); err == nil {
					_ = res.Body.Close()
				}
			}()
		}
		until(t, "sent", func() bool { return len(stopped) == (n+1)*streams })
		resident, alive := s.rss(t)-idle, heap()-live
		t.Logf("%d connections: %d KiB more than idle, %d of them alive", n+1, resident, alive)
		if alive > 64<<10 {
			t.Errorf("%d connections hold %d KiB; want at most 64 MiB", n+1, alive)
		}
	}
	res, err := connection().Post(url, "application/json", strings.NewReader(`{"max_tokens": 10}`)) //nolint:noctx // bounded
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("another client: %v, %v", res, err)
	}
	_ = res.Body.Close()
}
