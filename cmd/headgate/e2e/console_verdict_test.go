package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate/cmd/headgate/internal/serve"
	"github.com/headgate/headgate/internal/redistest"
)

// act acts as another operator does, without the page.
func (s *operated) act(what map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(what)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/console/api/acts",
		bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Fatal(what, answer.Status)
	}
}

// reload loads the page again, as a second tab would.
func (p *page) reload() {
	p.t.Helper()
	p.do(chromedp.Reload())
	p.until("the page is ready", `document.documentElement.dataset.ready === "true"`)
}

// A key that an operator has raised is not proposed for a ban, and a raise says what is in force.
func TestConsoleRaisedKey(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	s.act(map[string]any{"act": "raise", "rule": "api", "key": bot, "limits": []string{"9/h"}})
	p := s.console(withToken())
	p.expected = []string{" 422 "}
	p.until("it says who", says("#culprit-key", bot))
	p.until("it says that it was raised", says("#verdict-detail", "It was raised to 9/h"))
	if !value[bool](p, `document.querySelector("#culprit-ban").hidden`) {
		t.Error("a ban of a key that was raised is proposed")
	}
	p.enter("#search-key", bot)
	p.do(chromedp.KeyEvent(kb.Enter))
	button := `[...document.querySelectorAll("#found .rule-part")].find((r) =>
		r.querySelector("strong").textContent === "api")?.querySelectorAll(".buttons button")[1]`
	p.until("the key is shown", button)
	p.do(run(button + `.focus(); ` + button + `.click()`))
	p.until("it starts from what the key needs", `/^[1-9]\d{4,}\/h$/.test(document.querySelector("#act-limits").value)`)
	p.enter("#act-limits", "8/h")
	p.until("the effect is that of the change", says("#act-effect", "instead of 9/h, to which it was raised"))
	p.enter("#act-limits", "4/h")
	p.click("#act .primary")
	p.until("lower than the file is refused", says("#act .problem", "allows less than the limits of rule"))
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("the focus is back", `document.activeElement === `+button)
}

// What Envoy asks for is in the numbers of all rules, also if others ask as well.
func TestConsoleCountsEnvoy(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("wide", bot, 20*time.Millisecond)
	p := s.console(withToken())
	p.until("requests are counted", `Number(document.querySelector("#n-asked").textContent) > 10`)
	ask := `{"domain": "edge", "descriptors": [{"entries": [{"key": "remote_address", "value": "192.0.2.1"}]}]}`
	for range 100 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/json", strings.NewReader(ask))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	p.until("those of Envoy, too", `Number(document.querySelector("#n-denied").textContent) > 5`)
}

// A key that everybody shares is not proposed for a ban.
func TestConsoleSharedKey(t *testing.T) {
	t.Parallel()
	s := operate(t, func(o *serve.Options) {
		rules := strings.Replace(consoleRules, "domains:", "  - {name: everyone, limits: [2/h]}\ndomains:", 1)
		if err := os.WriteFile(o.Files[0], []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	p := s.console(withToken())
	p.until("the rule is there", says("#active-rules-rows", "everyone"))
	s.flood("everyone", "all", 20*time.Millisecond)
	p.until("it says what is denied", says("#culprit-rule", "everyone"))
	p.until("it says that all share the key", says("#verdict-detail", "This key is not one client"))
	if !value[bool](p, `document.querySelector("#culprit-ban").hidden`) {
		t.Error("a ban of everybody is proposed")
	}
	if !value[bool](p, rowOf("all")+`.querySelector(".ban").hidden`) {
		t.Error("the row proposes to ban everybody")
	}
	p.do(run(rowOf("all") + `.querySelector(".key-name").click()`))
	p.until("the key is shown", `document.querySelector("#keys .rule-part button")`)
	if !value[bool](p, `document.querySelector("#keys .rule-part .buttons button").hidden`) {
		t.Error("the details of the key propose to ban everybody")
	}
}

// A ban that a rule in shadow suspends is not shown as one that denies, also after a reload.
func TestConsoleIdleBan(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	s.act(map[string]any{"act": "ban", "rule": "api", "key": bot})
	s.act(map[string]any{"act": "mode", "rule": "api", "mode": "shadow"})
	p := s.console(withToken())
	for range 2 {
		p.until("it says so", says("#verdict-title", "A banned key is not denied"))
		p.until("it says why", says("#verdict-detail", "Rule api is in mode shadow, so its ban of "+bot+" has no effect"))
		p.until("the row says so", rowOf(bot)+`?.textContent.includes("but not denied: the rule is in mode shadow")`)
		p.reload()
	}
}

// Denials of other keys are counted beside those of a banned key, and all numbers agree, also after
// a reload. A ban does not change since when requests are denied.
func TestConsoleOtherKeys(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 10*time.Millisecond)
	s.flood("agents", "header:x", 30*time.Millisecond)
	p := s.console(withToken())
	p.until("it says who", says("#culprit-key", bot))
	s.act(map[string]any{"act": "ban", "rule": "api", "key": bot})
	for range 2 {
		p.until("the other key is at fault", says("#culprit-key", "header:x"))
		p.until("the banned one is counted apart", says("#verdict-detail", "Banned keys: another "))
		p.until("the numbers agree", `(() => {
			const number = (text) => parseFloat(/[\d.]+/.exec(text)[0]);
			const title = number(document.querySelector("#verdict-title").textContent);
			const banned = number(/another ([\d.]+)/.exec(document.querySelector("#verdict-detail").textContent)[1]);
			const tile = number(document.querySelector("#n-denied").textContent);
			return Math.abs(title + banned - tile) <= 1.5;
		})()`)
		p.reload()
	}
}

// A ban is of one rule, and the dialog says so and offers the others.
func TestConsoleBanOfOneRule(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	p := s.console(withToken())
	p.until("it says who", `!document.querySelector("#culprit-ban").hidden`)
	p.click("#culprit-ban")
	p.until("it says where the key is not banned", says("#act-effect", "The key can still use wide and next."))
	p.until("it offers the rules that enforce", says("#act .check:has(#act-also)", "Also ban it in wide"))
	p.click("#act-also")
	p.until("it is said", says("#act .primary", "Ban in 2 rules for 10 minutes"))
	p.click("#act .primary")
	p.until("it worked", says("#result", "Banned "+bot+" in rules api and wide"))
	if s.take("wide", bot) {
		t.Error("the key is allowed in the other rule")
	}
	for _, rule := range []string{"api", "wide"} {
		p.until("there is an act for each", says("#actions-rows", "Banned "+bot+" in rule "+rule))
	}
	p.do(run(rowOf(bot) + `.querySelector(".key-name").click()`))
	p.until("all its rules are shown", `document.querySelectorAll("#keys .rule-part").length === 4`)
	p.until("the ban is said", says("#keys .limit", "denied by the ban"))
	p.until("a mark says what was done", `[...document.querySelectorAll("#bands i")].filter((m) =>
		m.title.includes(" Banned `+bot+` in rule ")).length === 2`)
	p.do(run(`document.documentElement.style.scrollBehavior = "auto"; scrollTo(0, 1e6)`))
	p.until("the result covers nothing", `document.querySelector("#active-rules").getBoundingClientRect().bottom <=
		document.querySelector("#result").getBoundingClientRect().top`)
	p.click("#result button")
	p.until("both are undone", says("#result", "Undone: Banned "+bot+" in rules api and wide"))
	if !s.take("wide", bot) {
		t.Error("the key is denied in the other rule")
	}
}

// The address of a view shows it again: the chosen rule, and the key that is looked at.
func TestConsoleAddress(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	p := s.console(withToken())
	chosen := `document.querySelector("#denied-keys-rule").textContent === "rule api ×" &&
		!document.querySelector("#denied-keys-rule").hidden`
	p.until("the rule is there", `document.querySelector("#rules-rows .rule-name")`)
	p.do(run(`[...document.querySelectorAll("#rules-rows .rule-name")].find((b) => b.textContent === "api").click()`))
	p.until("the rule is chosen", chosen)
	p.until("it can be looked at", `!document.querySelector("#culprit-look").hidden`)
	p.click("#culprit-look")
	p.until("the key is shown", says("#found", "6/h"))
	p.reload()
	p.until("the rule is chosen again", chosen)
	p.until("the key is shown again", says("#found", "6/h")+` && document.querySelector("#search-key").value === `+quoted(bot))
	p.do(run(`document.querySelector("#denied-keys-rule").click()`)) // which moves while keys come
	p.until("the address is plain", `location.hash === ""`)
}

// The banner names the line of each error.
func TestConsoleFaults(t *testing.T) {
	t.Parallel()
	s := operate(t)
	p := s.console(withToken())
	s.write(strings.NewReplacer("[6/h]", "[6/x]", "mode: shadow", "mod: shadow").Replace(consoleRules))
	p.until("the banner has a line for each", `/:\d+: .*6\/x.*\n.*:\d+: .*mod/.test(document.querySelector("#config-error-text").innerText)`)
}

// On a phone nothing is cut off in the tables, and a finger can hit every control.
func TestConsolePhone(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("api", bot, 20*time.Millisecond)
	s.act(map[string]any{"act": "ban", "rule": "wide", "key": bot})
	p := s.console(withToken(), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	p.until("it says who", `!document.querySelector("#culprit-acts").hidden`)
	p.do(run(`document.querySelector("#fact-fleet").click(); document.querySelector(".key-name").click()`))
	p.until("a key is opened", `document.querySelector(".rule-part")`)
	small := value[string](p, `[...document.querySelectorAll("button, a, summary, input, select")]
		.filter((e) => e.checkVisibility() && !e.matches(".skip, [type=checkbox], [type=radio]"))
		.filter((e) => e.getBoundingClientRect().height < 32).map((e) => e.outerHTML.slice(0, 80)).join("\n")`)
	if small != "" {
		t.Errorf("lower than 32 px:\n%s", small)
	}
	label := value[bool](p, `(() => {
		const boxes = [...document.querySelectorAll("#numbers > div")].map((e) => [e, e.getBoundingClientRect()]);
		return boxes.every(([e, b]) => [...e.querySelectorAll("i, b")].every((c) => c.getBoundingClientRect().right <= b.right + 1));
	})()`)
	if !label {
		t.Error("a number is wider than its box")
	}
	cut := value[string](p, `[...document.querySelectorAll("td, th")].filter((e) => e.checkVisibility())
		.filter((e) => e.getBoundingClientRect().right > 361).map((e) => e.textContent).join("\n")`)
	if cut != "" {
		t.Errorf("beyond the edge:\n%s", cut)
	}
}

// When Redis is down, the page says which instances it does not know and what is decided how, and
// shows no half of the numbers as if it were all.
func TestConsoleStoreDown(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	shared := func(o *serve.Options) { o.Store = redis.URL() }
	s := operate(t, shared)
	operate(t, shared)
	p := s.console(withToken())
	p.expected = []string{" 50"}
	p.until("both are known", says("#fact-fleet", "2 instances"))
	p.click("#rules-rows .mode")
	redis.Stop()
	p.until("it says so", says("#verdict-title", "The store is down"))
	p.until("a dialog that is open promises nothing", says("#act-effect", "The store is down. If you have sent this already, it may have been done"))
	p.click("#act .buttons button[type=button]")
	p.until("it says what is done", says("#verdict-detail", "when_store_fails: share"))
	p.until("one is not known", says("#fact-fleet", "Other instances not known")+" && "+says("#alone", "2 instances were known at "))
	p.until("nothing is said of what cannot be read", says("#overrides-none", "The store is down")+
		` && document.querySelector("#actions-none").hidden`)
	p.click("#rules-rows .mode")
	p.until("no action is begun", says("#result", "The store is down."))
}

// The mode of a rule that the page does not list, because others decide more, can be changed, too.
func TestConsoleRuleBeyondTheList(t *testing.T) {
	t.Parallel()
	s := operate(t)
	var many strings.Builder
	for i := range 210 {
		fmt.Fprintf(&many, "  - {name: r%03d, key: ip, limits: [6/h]}\n", i)
	}
	s.write(strings.Replace(consoleRules, "domains:", many.String()+"domains:", 1))
	p := s.console(withToken())
	p.until("the rules are loaded", says("#active-rules-all", "Show all 214 rules"))
	s.act(map[string]any{"act": "mode", "rule": "r209", "mode": "shadow"})
	p.until("the switch is listed", says("#overrides", "r209"))
	p.click("#overrides button")
	p.until("the end of the switch comes first", says("#act-effect", "Rule r209 denies requests over its limits. With the present traffic, that is about 0 requests"))
	p.click("#act .primary")
	p.until("it worked", says("#result", "Switched rule r209 to mode of the file."))
}

// The chart links to a dashboard at the same time, whatever the address of that has already.
func TestConsoleGrafana(t *testing.T) {
	t.Parallel()
	p := operate(t, func(o *serve.Options) { o.Grafana = "https://grafana.example/d/headgate?orgId=1&from=now-1h" }).console(withToken())
	p.until("there is a link", `!document.querySelector("#grafana").hidden`)
	link := value[string](p, `document.querySelector("#grafana").href`)
	if !regexp.MustCompile(`^https://grafana\.example/d/headgate\?orgId=1&from=\d{13}&to=\d{13}$`).MatchString(link) {
		t.Error(link)
	}
}

// A lower limit in the files is named as the cause, and no client is blamed for it.
func TestConsoleNamesTheChange(t *testing.T) {
	t.Parallel()
	s := operate(t)
	s.flood("wide", "ip:192.0.2.1", 20*time.Millisecond)
	p := s.console(withToken())
	p.until("it is calm", says("#verdict-title", "Nothing unusual"))
	s.write(strings.Replace(consoleRules, "1000000/s", "2/h", 1))
	p.until("it says what began it", says("#verdict-title", " the rules changed"))
	p.until("it shows the change", `!document.querySelector("#culprit-change").hidden`)
	p.until("no ban is proposed", `document.querySelector("#culprit-ban").hidden &&
		document.querySelector("#culprit-raise").hidden`)
	p.click("#culprit-change")
	p.until("both lines are shown", says("#change-lines del", "rule wide: 1000000/s for each ip")+" && "+
		says("#change-lines ins", "rule wide: 2/h for each ip"))
	p.until("a band says when", `[...document.querySelectorAll("#bands i")].some((m) => m.title.endsWith(" the rules changed"))`)
	p.do(run(`document.querySelector("#bands i[title$=changed]").focus()`))
	p.until("its words are shown", says("#readout", " the rules changed"))
	p.do(run(`document.activeElement.blur()`))
	p.click("#culprit-mode")
	p.click("#act .primary")
	p.until("it is switched", says("#result", "Switched rule wide to mode shadow until "))
	p.until("the page is not calm", says("#verdict-title", "Rule wide is switched by hand")+
		` && document.body.dataset.level === "warn"`)
	p.until("the change is one click away", `!document.querySelector("#culprit-change").hidden`)
	p.until("its keys are denied no more", rowOf("ip:192.0.2.1")+`?.textContent.match(/ denied, \d.* would be denied/)`)
}

// What a denied key asked for is shown, as text, and a raise starts from what it needs.
func TestConsoleShowsRequests(t *testing.T) {
	t.Parallel()
	s := operate(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/auth", nil)
			if err != nil {
				return
			}
			r.Header.Set("User-Agent", "<script>alert(1)</script>")
			r.Header.Set("X-Forwarded-Uri", "/%3Cimg%20src=x%3E")
			if answer, err := http.DefaultClient.Do(r); err == nil {
				answer.Body.Close()
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	p := s.console(withToken())
	p.until("the headline says what it asked for", says("#culprit-seen", "were noted, from 1 address: GET /<img src=x>; user agents <script>alert(1)</script>."))
	key := "header:<script>alert(1)</script>"
	p.until("the key is listed", rowOf(key))
	p.do(run(rowOf(key) + `.querySelector(".key-name").click()`))
	p.until("its details say it", says("#keys .key-seen", "The newest ")+" && "+says("#keys .key-seen", "from 1 address: GET /<img src=x>"))
	p.click("#culprit-ban")
	p.until("the effect is said", says("#act-effect", "Every request of this key"))
	p.do(chromedp.KeyEvent(kb.Escape))
	p.click("#culprit-raise")
	p.until("it starts from what the key needs", `Number.parseInt(document.querySelector("#act-limits").value) > 10_000 &&
		document.querySelector("#act-limits").value.endsWith("/h")`)
	p.until("what it asks for is said", says("#act", "the key asks for "))
}

// With --console keys, nothing of a request is shown.
func TestConsoleKeysOnly(t *testing.T) {
	t.Parallel()
	s := operate(t, func(o *serve.Options) { o.ConsoleKeysOnly = true })
	for range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/auth", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-Uri", "/")
		if answer, err := http.DefaultClient.Do(r); err == nil {
			answer.Body.Close()
		}
	}
	p := s.console(withToken())
	s.flood("agents", "header:x", 20*time.Millisecond)
	p.until("a key is listed", rowOf("header:x"))
	if value[bool](p, `document.body.textContent.includes("were noted")`) {
		t.Error("requests are shown")
	}
}
