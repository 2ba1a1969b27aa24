package e2e

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
)

// Between two answers of the server the level rises by itself.
func TestLevelBetweenAnswers(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "100/s burst 1000")
	p.enter("#burst", "1000")
	p.click("#send-burst")
	p.until("it is taken", number("left", "allowed")+" === 1000")
	p.do(run(`window.fetch = () => new Promise(() => {}); window.levels = new Set();
		(function frame() { levels.add(` + number("left", "remaining") + `); requestAnimationFrame(frame); })()`))
	p.until("many levels are shown without an answer", `levels.size > 8`)
}

// halting is a store that fails until the test heals it.
type halting struct {
	headgate.Store

	halted atomic.Bool
}

func (h *halting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if h.halted.Load() {
		return headgate.Decision{}, errors.New("no route")
	}
	return h.Store.Take(ctx, r)
}

// The error of a store that is gone is shown once, and hides nothing that a person did wrong.
func TestLost(t *testing.T) {
	t.Parallel()
	store := &halting{Store: headgate.NewMemory()}
	p := open(t, serveDemo(t, store), calm)
	p.enter("#burst", "many")
	p.click("#send-burst")
	p.until("the error is shown", `!document.querySelector("#traffic-error").hidden`)
	p.do(run(`window.written = 0; new MutationObserver((all) => written += all.length).observe(document.querySelector("#lost"), {childList: true, characterData: true, subtree: true})`))
	store.halted.Store(true)
	p.until("it is lost", `document.querySelector("#lost").textContent === "the store is unavailable: no route" && !document.querySelector("#lost").hidden`)
	p.do(run(`window.answers = 0; window.asked = window.fetch;
		window.fetch = async (...all) => { const answer = await asked(...all); answers++; return answer; }`))
	p.until("it has asked again", `answers > 1`)
	if n := value[int](p, `written`); n != 1 {
		t.Errorf("it was told %d times", n)
	}
	store.halted.Store(false)
	p.until("it is found", `document.querySelector("#lost").hidden`)
	if !value[bool](p, `document.querySelector("#traffic-error").textContent.includes("many")`) {
		t.Error("what a person did wrong is hidden")
	}
}

// A state that is older than what is shown, because its answer took longer, is not
// shown.
func TestOldState(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "1/h burst 10")
	p.do(run(`window.held = []; window.late = true; window.asked = window.fetch;
		window.fetch = async (path, options) => {
			const mine = path === "/api/state" && late;
			if (mine) late = false;
			const answer = await asked(path, options);
			if (mine) await new Promise((go) => held.push(go));
			return answer;
		}`))
	p.until("a state is held back", `held.length === 1`)
	p.click("#one")
	p.until("one is taken", number("left", "remaining")+" === 9")
	p.do(run(`window.seen = new Set(); window.fetch = () => new Promise(() => {}); held[0]();
		(function frame() { seen.add(` + number("left", "remaining") + `); requestAnimationFrame(frame); })()`))
	p.frames(20)
	if got := value[string](p, `[...seen].join()`); got != "9" {
		t.Errorf("it shows %s", got)
	}
}

// A batch that was sent before a reset does not count after it, and a state that is older
// than the one on the page is ignored.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.do(run(`window.held = []; window.asked = window.fetch;
		window.fetch = async (path, options) => {
			const answer = await asked(path, options);
			if (path === "/api/requests") await new Promise((go) => held.push(go));
			if (path === "/api/limits") setTimeout(() => (window.wasReset = true), 200);
			return answer;
		}`))
	p.enter("#burst", "100")
	p.click("#send-burst")
	p.until("it is decided", `held.length === 1`)
	p.click("#reset")
	p.until("it was reset", `window.wasReset`)
	p.do(run(`held[0]()`))
	p.frames(20)
	if got := p.text(part("left", "allowed")) + " " + p.text(part("left", "denied")); got != "0 0" {
		t.Errorf("it shows %s", got)
	}
}

// slowClock makes the clock of a page eight times as slow. A line that the page shows for 10
// seconds is there for longer than the test waits.
var slowClock = atStart(`const clock = performance.now.bind(performance);
	performance.now = () => clock() / 8`)

// What was decided is said in words, until it is no longer the last.
func TestDecisionInWords(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm, slowClock)
	status := func(want string) string { return `document.querySelector("#status").textContent === ` + quoted(want) }
	p.setLimit("left", "1/h burst 10")
	p.setLimit("right", "1/h burst 30")
	p.click("#one")
	p.until("one is allowed", status("Left: ALLOWED · Right: ALLOWED"))
	p.enter("#burst", "20")
	p.click("#send-burst")
	p.until("some are denied", status("Left: 9 ALLOWED, 11 DENIED · Right: 20 ALLOWED"))
	p.click("#one")
	p.until("one is denied", status("Left: DENIED · Right: ALLOWED"))
	p.click("#reset")
	p.until("it is forgotten", status(""))
	for name, next := range map[string]func(){
		"a request of another program": func() { p.do(run(`fetch("/test", {method: "POST"})`)) },
		"another limit":                func() { p.setLimit("left", "2/h") },
	} {
		p.click("#one")
		p.until("one is decided", `document.querySelector("#status").textContent.includes("Right: ALLOWED")`)
		next()
		p.until("it is not the last after "+name,
			`!document.querySelector("#status").textContent.includes("Right:")`)
	}
}

// What came of the bursts across an edge is said in words, and not under a tour.
func TestEdgeInWords(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	p.setLimit("right", "10/2s fixed-window")
	p.click("#edge")
	p.until("the edge is told", `document.querySelector("#status").textContent.startsWith("Across the edge")`)
	p.click("#tour-start")
	p.until("the tour does not show it", `document.querySelector("#tour-status").textContent === ""`)
}
