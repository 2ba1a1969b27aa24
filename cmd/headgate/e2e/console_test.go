package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const bot = "ip:203.0.113.66"

// says is whether an element contains a text.
func says(selector, text string) string {
	return `document.querySelector(` + quoted(selector) + `)?.textContent.includes(` + quoted(text) + `)`
}

// rowOf is the row of a key.
func rowOf(key string) string {
	return `[...document.querySelectorAll(".key-row")].find((r) => r.querySelector(".key-name").textContent === ` +
		quoted(key) + `)`
}

// An operator sees who is at fault, bans it with two clicks, sees that it worked, and undoes it.
func TestConsoleBan(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	s.flood("wide", "ip:192.0.2.1", 20*time.Millisecond)
	p := s.console(withToken())
	p.until("it says that much is denied", says("#verdict-title", " denials a second since "))
	p.until("it says who", says("#culprit-key", bot)+" && "+says("#culprit-rule", "api"))
	p.until("the rates are shown", `parseFloat(document.querySelector("#n-denied").textContent) > 5 &&
		parseFloat(document.querySelector("#n-asked").textContent) > 5`)
	p.until("the key is listed", rowOf(bot))

	p.until("the buttons name the key", says("#culprit-ban", "Ban "+bot)+" && "+
		says("#culprit-raise", "Raise "+bot))
	p.click("#culprit-ban")
	p.until("the effect is said before", says("#act-effect", "Every request of this key that rule api applies to is denied until "))
	p.click("#act .primary")
	p.until("it worked", says("#result", "Banned "+bot+" in rule api"))
	p.until("the verdict says so", says("#verdict-title", "The top denied key is banned"))
	p.until("the row says so", rowOf(bot)+`.textContent.includes("banned until")`)
	p.until("the list says so", says("#actions-rows", "Banned "+bot+" in rule api"))
	p.click("#result button")
	p.until("it is undone", says("#result", "Undone: Banned "+bot))
	p.until("the row says so", `!`+rowOf(bot)+`.textContent.includes("banned")`)
	p.until("the list says so", says("#actions-rows", "Undone at "))
}

// All of a ban by the keyboard.
func TestConsoleKeyboard(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	p := s.console(withToken())
	p.until("it says who", `!document.querySelector("#culprit-acts").hidden`)
	for i := 0; !value[bool](p, `document.activeElement.id === "culprit-ban"`); i++ {
		if i > 20 {
			t.Fatal("the tab key does not lead to the button")
		}
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("the dialog has the focus", `document.activeElement.closest("#act[open]")`)
	p.do(chromedp.KeyEvent(kb.ArrowRight))
	p.until("an hour is chosen", says("#act .primary", "Ban for 1 hour"))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("it worked", says("#result", "Banned "+bot+" in rule api"))
	p.do(run(`document.querySelector("#plot").focus()`), chromedp.KeyEvent(kb.ArrowLeft))
	p.until("moments are read", says("#verdict-live", "denied"))
}

// Without a token, a person looks on.
func TestConsoleWithoutToken(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	p := s.console()
	p.expected = []string{" 401 "}
	p.until("the button is there", `!document.querySelector("#culprit-acts").hidden`)
	p.until("it is explained", says("#viewing", "A token is needed"))
	for _, button := range []string{"#culprit-ban", "#keys .ban", "#rules-rows .mode"} {
		p.until(button+" is disabled", `document.querySelector(`+quoted(button)+`).ariaDisabled === "true" &&
			document.querySelector(`+quoted(button)+`).title !== ""`)
		p.click(button)
		p.until("it says why, and asks for a token", `document.querySelector("#access").open`)
		p.do(chromedp.KeyEvent(kb.Escape))
		p.until("the form is closed", `!document.querySelector("#access").open`)
	}
	if value[bool](p, `document.querySelector("#act").open`) {
		t.Error("a disabled button opens the dialog")
	}
	p.click("#viewing-button")
	p.enter("#access-token", "wrong")
	p.click("#access .primary")
	p.until("a wrong token is refused", says("#access .problem", "oken"))
	p.enter("#access-token", operatorToken)
	p.click("#access .primary")
	p.until("the button can be used", `document.querySelector("#culprit-ban").ariaDisabled === null`)
	p.until("the focus is somewhere", `document.activeElement.id === "access-button"`)
	p.until("nothing is to be explained", `document.querySelector("#viewing").hidden`)
}

// A person who is asked for a token on the way to an action goes on with it.
func TestConsoleTokenOnTheWay(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	p := s.console()
	p.until("the button is there", `!document.querySelector("#culprit-acts").hidden`)
	p.click("#culprit-ban")
	p.until("it asks for a token", `document.querySelector("#access").open`)
	p.enter("#access-token", operatorToken)
	p.click("#access .primary")
	p.until("it goes on", `document.querySelector("#act").open && !document.querySelector("#access").open`)
	p.until("with the key", says("#act .about", bot))
	p.click("#act .primary")
	p.until("it worked", says("#result", "Banned "+bot+" in rule api"))
}

// Keys are texts, whatever is in them.
func TestConsoleKeysAreTexts(t *testing.T) {
	t.Parallel()
	s := operate(t)
	long := "header:" + strings.Repeat("k", 4000)
	wide := "header:" + strings.Repeat("m", 200)
	p := s.console(withToken(), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	p.until("keys are counted from now on", says("#denied-keys-period", "counted since "))
	for _, key := range []string{
		"header:<img src=x onerror=alert(1)>", "header:\u202egnp.exe\u0007", "header:שלום", long, wide,
	} {
		for range 5 {
			s.take("agents", key)
		}
	}
	p.until("markup is text", rowOf("header:<img src=x onerror=alert(1)>"))
	p.until("what cannot be seen is written", rowOf(`header:\u202Egnp.exe\u0007`))
	p.until("other scripts are as they are", rowOf("header:שלום"))
	p.until("the long keys are listed", `document.querySelector(".key-name[title*=kkkk]") &&
		document.querySelector(".key-name[title*=mmmm]")`)
	p.do(run(`document.querySelector(".key-name[title*=kkkk]").click()`))
	p.until("a long key is shown", `document.querySelector(".key-full")`)
	p.until("the part that is known cannot be banned",
		`document.querySelector(".key-row:has(.key-full) .ban").ariaDisabled === "true"`)
	p.do(run(`document.querySelector(".key-name[title*=mmmm]").click()`))
	p.until("a wide key is shown", `document.querySelector(".key-full")?.textContent === `+quoted(wide))
	p.do(run(`document.querySelector(".key-row:has(.key-full) .ban").click()`))
	p.until("the dialog shows it", `document.querySelector("#act[open] .about")`)
	if n := value[int](p, `document.querySelectorAll("#keys img, #act img").length`); n != 0 {
		t.Errorf("%d images", n)
	}
	p.checkWidth(360)
}

// checkWidth fails the test if the page or its dialog is wider than a screen.
func (p *page) checkWidth(width int) {
	p.t.Helper()
	w := value[int](p, `Math.max(document.documentElement.scrollWidth,
		...[...document.querySelectorAll("dialog[open]")].map((d) => d.scrollWidth))`)
	if w <= width {
		return
	}
	p.t.Errorf("the page is %d px wide; want %d; too wide are\n%s", w, width, value[string](p, fmt.Sprintf(
		`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".scroll"))
			.map((e) => e.tagName + "#" + e.id + "." + e.className).join("\n")`, width)))
}

func TestConsoleWidths(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	s.flood("next", bot, 50*time.Millisecond)
	p := s.console(withToken())
	p.until("it says who", `!document.querySelector("#culprit-acts").hidden`)
	p.do(run(`document.querySelector("#fact-fleet").click(); document.querySelector(".key-name").click()`))
	p.until("a key is opened", `document.querySelector(".rule-part")`)
	for _, width := range []int{360, 768, 1024, 1600} {
		p.do(chromedp.EmulateViewport(int64(width), 800))
		p.checkWidth(width)
		p.do(run(`document.querySelector("#keys .rule-part button").click()`))
		p.until("the dialog is open", `document.querySelector("#act[open]")`)
		p.checkWidth(width)
		p.do(chromedp.KeyEvent(kb.Escape))
		p.until("the dialog is closed", `!document.querySelector("#act[open]")`)
	}
}

// The page is light or dark as the reader likes.
func TestConsoleScheme(t *testing.T) {
	t.Parallel()
	s := operate(t)
	seen := map[string]bool{}
	p := s.console()
	for _, scheme := range []string{"light", "dark"} {
		p.do(prefers("prefers-color-scheme", scheme))
		seen[value[string](p, `getComputedStyle(document.body).backgroundColor`)] = true
	}
	if len(seen) != 2 {
		t.Errorf("backgrounds are %v", seen)
	}
	p.until("rules are listed", `document.querySelector(".rule-name")`)
	p.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
	if value[bool](p, `!document.querySelector(".rule-name").checkVisibility() || document.querySelector("#access-button").checkVisibility()`) {
		t.Error("print has no names of rules, or buttons")
	}
}

// Before there is traffic, the page says so. When the server has gone, it says so, and goes on when
// it is back.
func TestConsoleConnection(t *testing.T) {
	t.Parallel()
	s := operate(t)
	p := s.console(withToken())
	p.expected = []string{"net::ERR_"}
	p.until("it says that there is no traffic", says("#verdict-title", "No decisions"))
	s.stop()
	p.until("it says that the server has gone", `!document.querySelector("#lost").hidden && document.body.matches(".stale")`)
	again := operate(t, at(strings.TrimPrefix(s.url, "http://")))
	p.until("it goes on", `document.querySelector("#lost").hidden && !document.body.matches(".stale")`)
	again.take("wide", bot)
	p.until("it shows what comes", says("#verdict-title", "Nothing unusual"))
}

// A rule is switched to shadow and back, and the error of a file is shown with its line.
func TestConsoleModeAndFile(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	s.act(map[string]any{"act": "ban", "rule": "api", "key": bot})
	p := s.console(withToken())
	mode := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#rules-rows tr")].find((r) => r.querySelector(".rule-name").textContent === %q)?.querySelector(".mode")`, name)
	}
	p.until("the rule is there", mode("api"))
	p.do(run(mode("api") + `.click()`))
	p.until("the effect is said", says("#act-effect", "denies nothing"))
	p.click("#act .primary")
	p.until("it worked", says("#result", "Switched rule api to mode shadow until "))
	p.until("it says that the ban does nothing", says("#result", "so its ban has no effect."))
	if !s.take("api", bot) {
		t.Error("a rule in shadow denies")
	}
	p.until("it is shown", mode("api")+`.textContent === "shadow"`)
	p.click("#result button")
	p.until("it is undone", mode("api")+`.textContent === "enforce"`)

	p.until("the rules are shown", says("#active-rules-rows", "6/h")+" && !"+says("body", operatorToken))
	s.write(strings.Replace(consoleRules, "[6/h]", "[6/x]", 1))
	p.until("the error is shown", says("#config-error-text", "6/x"))
	s.write(consoleRules)
	p.until("it has gone", `document.querySelector("#config-error").hidden`)
}

// A key that is found is reset and raised.
func TestConsoleResetRaise(t *testing.T) {
	t.Parallel()
	s := operate(t)
	for range 8 {
		s.take("api", "ip:192.0.2.7")
	}
	p := s.console(withToken())
	p.enter("#search-key", "192.0.2.7")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("its state is shown", says("#found", "0 of 6 remain"))
	press := func(text string) {
		p.do(run(`{const part = [...document.querySelectorAll("#found .rule-part")]
			.find((r) => r.querySelector("strong").textContent === "api");
			[...part.querySelectorAll(".buttons button")].find((b) => b.textContent === ` + quoted(text) + `).click()}`))
	}
	press("Reset…")
	p.click("#act .primary")
	p.until("it worked", says("#result", "Reset ip:192.0.2.7 in rule api."))
	p.until("its state is shown", says("#found", "6 of 6 remain"))
	if !s.take("api", "ip:192.0.2.7") {
		t.Error("a key is denied after a reset")
	}
	press("Raise…")
	p.enter("#act-limits", "no limit")
	p.click("#act .primary")
	p.until("a bad limit is refused", says("#act .problem", "no limit"))
	p.enter("#act-limits", "50/h")
	p.click("#act .primary")
	p.until("it worked", says("#result", "Raised ip:192.0.2.7 in rule api to 50/h until "))
	p.until("it is in force", says("#overrides", "50/h"))
	p.do(run(`{const later = setTimeout; globalThis.setTimeout = (f, ms, ...more) => later(f, ms === 10_000 ? 1 : ms, ...more)}`))
	p.do(run(`document.querySelector("#result button").click()`))
	p.until("it is undone", says("#actions-rows", "Undone at "))
	p.until("the result goes", `document.querySelector("#result").hidden`)
}

// From beyond this machine, the page shows nothing but a form until there is a token.
func TestConsoleGate(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	through := network.Headers{"X-Forwarded-For": "192.0.2.1"} // as of a proxy
	p := s.console(call(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: through}))
	p.expected = []string{" 401 "}
	p.until("it asks for a token", `document.querySelector("#gate form")`)
	if value[bool](p, `document.body.textContent.includes(`+quoted(bot)+`)`) {
		t.Error("keys are shown without a token")
	}
	p.enter("#access-token", "wrong")
	p.click("#gate .primary")
	p.until("a wrong token is refused", `!document.querySelector("#gate .problem").hidden`)
	p.enter("#access-token", operatorToken)
	p.click("#gate .primary")
	p.until("it shows who", says("#culprit-key", bot))
}

// closeAtEnd closes a server when the test ends. The browser keeps connections that it has opened,
// and Close alone would wait for them.
func closeAtEnd(t *testing.T, s *httptest.Server) {
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
}

// A page that may read, but gets no events, as behind a proxy that keeps them back, asks less and
// less often.
func TestConsoleRefusedEvents(t *testing.T) {
	t.Parallel()
	s := operate(t)
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []time.Time // since closed
	closed := false
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refused := closed && strings.HasSuffix(r.URL.Path, "/events")
		if refused {
			asked = append(asked, time.Now())
		}
		mu.Unlock()
		if !refused {
			forward.ServeHTTP(w, r)
			return
		}
		http.Error(w, "not here", http.StatusForbidden)
	}))
	closeAtEnd(t, proxy)
	p := openAt(t, proxy.URL, "/console/", withToken())
	p.expected = []string{" 403 ", "net::ERR_"}
	mu.Lock()
	closed = true
	mu.Unlock()
	proxy.CloseClientConnections()
	p.until("it says so", `!document.querySelector("#lost").hidden && document.body.matches(".stale")`)
	for deadline := time.Now().Add(time.Minute); ; {
		mu.Lock()
		times := slices.Clone(asked)
		mu.Unlock()
		if len(times) < 3 {
			if time.Now().After(deadline) {
				t.Fatalf("it asked %d times", len(times))
			}
			<-time.After(20 * time.Millisecond)
			continue
		}
		if took := times[2].Sub(times[0]); took < 1500*time.Millisecond { // 500 and 1,000 ms
			t.Errorf("it asked 3 times in %v", took)
		}
		return
	}
}

// A pattern bans many keys, and the page works below the path of a proxy.
func TestConsolePattern(t *testing.T) {
	t.Parallel()
	s := operate(t)
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/ops")
	}}
	proxy := httptest.NewServer(forward)
	closeAtEnd(t, proxy)
	p := openAt(t, proxy.URL, "/ops/console/", withToken())
	p.enter("#search-key", "ip:203.0.113.*")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("it is said", says("#found", "stands for many keys"))
	p.do(run(`document.querySelector("#found .buttons button").click()`))
	p.until("it is many keys", says("#act-caution", "all keys that match it"))
	p.click("#act .primary")
	p.until("it asks again", says("#act .problem", "Confirm it first"))
	p.click("#act-sure")
	p.click("#act .primary")
	p.until("it worked", says("#result", "Banned ip:203.0.113.* in rule api"))
	if s.take("api", bot) {
		t.Error("a key of the pattern is allowed")
	}
	p.until("the key says by what", rowOf(bot)+`?.textContent.includes("banned by ip:203.0.113.*")`)
}
