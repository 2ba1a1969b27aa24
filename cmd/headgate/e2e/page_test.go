package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/demo"
)

// serveDemo serves the demo for store until the test ends, and returns its URL.
func serveDemo(t *testing.T, store headgate.Store) string {
	t.Helper()
	d, err := demo.New(store, demo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

type action = chromedp.Action[chromedp.Void]

// call is a command of the protocol as an action.
func call[P any](command cdp.Command[P, cdp.Empty], params P) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, command, params)
		return err
	})
}

// page is the demo in a tab.
type page struct {
	t   *testing.T
	tab context.Context //nolint:containedctx // the tab is one

	mu       sync.Mutex
	requests int
	troubles []string // errors and strangers
	refusals int      // answers of 400 and 503, which some tests provoke
	expected []string // parts of messages that a test provokes, too
}

// open opens the demo at url in a tab of its own. When the test ends, the console must be
// empty, and the page must have called only its server.
func open(t *testing.T, url string, before ...action) *page {
	t.Helper()
	return openAt(t, url, "", before...)
}

// openAt opens the page at path of the server at url.
func openAt(t *testing.T, url, path string, before ...action) *page {
	t.Helper()
	ours := origin(url) + "/"
	return load(t, url+path, func(asked string) bool { return strings.HasPrefix(asked, ours) }, before...)
}

// load opens a page that may ask for what is its own only.
func load(t *testing.T, url string, own func(asked string) bool, before ...action) *page {
	t.Helper()
	p := &page{t: t, tab: newTab(t)}
	if err := chromedp.Listen(p.tab, p.listen(own)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.verify)
	p.do(call(log.Enable, cdp.Empty{}), call(network.Enable, network.EnableParams{}), chromedp.EmulateViewport(1280, 1000))
	p.do(before...)
	p.do(chromedp.Navigate(url))
	p.until("the page is ready", `document.documentElement.dataset.ready === "true"`)
	return p
}

// origin returns the part of a URL before its path.
func origin(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

func (p *page) listen(own func(asked string) bool) func(any) {
	return func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			p.troubles = append(p.troubles, "console "+e.Type.String())
		case *runtime.EventExceptionThrown:
			p.troubles = append(p.troubles, fmt.Sprintf("exception %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		case *log.EventEntryAdded:
			if e.Entry.Source == "network" && (strings.Contains(e.Entry.Text, " 400 ") || strings.Contains(e.Entry.Text, " 503 ")) {
				p.refusals++
				return
			}
			if slices.ContainsFunc(p.expected, func(s string) bool { return strings.Contains(e.Entry.Text, s) }) {
				return
			}
			p.troubles = append(p.troubles, "log "+e.Entry.Text+" "+e.Entry.URL)
		case *network.EventRequestWillBeSent:
			p.requests++
			if !own(e.Request.URL) {
				p.troubles = append(p.troubles, "request to "+e.Request.URL)
			}
		}
	}
}

func (p *page) verify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, trouble := range p.troubles {
		p.t.Error(trouble)
	}
	if p.requests == 0 {
		p.t.Error("no request of the page was seen")
	}
}

func (p *page) do(actions ...action) {
	p.t.Helper()
	if err := chromedp.Do(p.tab, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// click clicks on an element with the mouse, and again if the page moved it away meanwhile.
func (p *page) click(selector string) {
	p.t.Helper()
	e := `document.querySelector(` + quoted(selector) + `)`
	p.until(selector+" is shown", e+`?.checkVisibility()`)
	p.do(run(`window.hit = false;
		document.addEventListener("click", (c) => { hit ||= Boolean(c.target.closest(` + quoted(selector) + `)); }, {capture: true})`))
	for range 3 {
		p.do(chromedp.Click(chromedp.CSS(selector)))
		if value[bool](p, `window.hit !== false`) { // a click may have opened another page
			return
		}
	}
	p.t.Fatalf("%s cannot be clicked: it moves, or something covers it", selector)
}

// enter puts text into a field, in place of what is there.
func (p *page) enter(selector, text string) {
	p.t.Helper()
	p.do(chromedp.Focus(chromedp.CSS(selector)), run(`document.activeElement.select()`), chromedp.KeyEvent(text))
}

// choose chooses an option of a select.
func (p *page) choose(selector, value string) {
	p.t.Helper()
	value = quoted(value)
	p.do(run(`{const s = document.querySelector(` + quoted(selector) + `); s.value = ` + value + `;
		s.dispatchEvent(new Event("input", {bubbles: true}))}`))
}

func quoted(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

// run is statements as an action.
func run(statements string) action {
	return chromedp.Evaluate[chromedp.Void](statements + "; ({})")
}

// value evaluates an expression in the page.
func value[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.tab, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *page) text(selector string) string {
	p.t.Helper()
	return value[string](p, `document.querySelector(`+quoted(selector)+`).textContent`)
}

// until waits for a condition to be true. The longer it waits, the less often it looks, because
// each look takes time of a browser that other tests share.
func (p *page) until(what, condition string) {
	p.t.Helper()
	deadline, pause := time.Now().Add(time.Minute), 10*time.Millisecond
	for !value[bool](p, `Boolean(`+condition+`)`) {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s; the page says\n%s", what, value[string](p, `document.body.innerText.replaceAll(/\n\s*/g, "\n").slice(0, 4000)`))
		}
		<-time.After(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// frames waits until the page has had so many frames, in which it would have drawn what came.
func (p *page) frames(n int) {
	p.t.Helper()
	p.do(run(`window.passed = 0; (function pass() { passed++; requestAnimationFrame(pass); })()`))
	p.until("frames have passed", `passed > `+strconv.Itoa(n))
}

// part is a selector of a part of a lane.
func part(lane, name string) string { return "#" + lane + " [data-part=" + name + "]" }

// number is an expression for the first number that a part of a lane shows.
func number(lane, name string) string {
	return `parseInt(document.querySelector(` + quoted(part(lane, name)) + `).textContent.replaceAll(",", ""))`
}

// setLimit enters the limit of a lane as text, applies it and waits until it is in force.
func (p *page) setLimit(lane, text string) {
	p.t.Helper()
	p.enter(part(lane, "limit"), text)
	p.click(part(lane, "apply"))
	p.until("the limit is "+text, `document.querySelector(`+quoted(part(lane, "text"))+`).textContent === `+quoted(text))
}

// calm makes the demo draw twice a second, and not thirty times: most of the time of a browser goes
// into pictures, and most tests read texts.
var calm = prefers("prefers-reduced-motion", "reduce")

func prefers(feature, value string) action {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	})
}

// hostOf is the host and port of a URL.
func hostOf(t *testing.T, raw string) (host, port string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Hostname(), u.Port()
}
