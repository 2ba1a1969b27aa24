package e2e

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

func TestBurstUntilDenied(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	p.setLimit("left", "1/10m burst 10")
	p.click("#one")
	p.until("one is allowed on both sides", number("left", "allowed")+" === 1 && "+number("right", "allowed")+" === 1")
	p.enter("#burst", "14")
	p.click("#send-burst")
	p.until("the rest is denied", number("left", "allowed")+" === 10 && "+number("left", "denied")+" === 5")
	p.until("nothing is left", number("left", "remaining")+" === 0")
	p.until("the header says so", `document.querySelector(`+quoted(part("left", "fields"))+`).textContent.match("Retry-After: (600|59[0-9])")`)
	if got := p.text(part("left", "fields")); !strings.HasPrefix(got, `RateLimit: "left";r=0;t=`) || !strings.Contains(got, "\nX-RateLimit-Limit: 10\n") {
		t.Errorf("the fields are %s", got)
	}
	p.until("the chart says so", `document.querySelector("#left canvas").ariaLabel === "The left limit in the last 15 seconds: 10 allowed, 5 denied"`)
	p.until("screen readers get the summary", `document.querySelector("#summary").textContent.startsWith("Left: 10 allowed, 5 denied, 0 of 10 left.")`)
}

// Requests that are sent during a reset count, however late the reset is answered.
func TestSentWhileStartingAfresh(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.do(run(`const answer = window.fetch;
		window.fetch = async (path, options) => {
			const response = await answer(path, options);
			if (path === "/api/limits") {
				await new Promise((late) => setTimeout(late, 300));
				setTimeout(() => { window.begun = true; }, 100);
			}
			return response;
		}`))
	p.click("#reset")
	p.click("#one")
	p.until("it counts", "window.begun && "+number("left", "allowed")+" === 1")
	p.until("it is taken", number("left", "remaining")+" < 10")
}

func TestRefillIsSeen(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "100/s burst 1000")
	p.until("it is full at first", number("left", "remaining")+" === 1000")
	// What each frame shows, so that nothing is missed on a machine that is busy.
	p.do(run(`window.levels = [];
		(function frame() {
			const level = [` + number("left", "remaining") + `, parseFloat(document.querySelector(` + quoted(part("left", "fill")) + `).style.width)];
			if (level[0] !== levels.at(-1)?.[0]) levels.push(level);
			requestAnimationFrame(frame);
		})()`))
	p.enter("#burst", "1000")
	p.click("#send-burst")
	p.until("most is taken", `levels.length > 1`)
	p.until("it is full in the end", number("left", "remaining")+` === 1000 && document.querySelector(`+quoted(part("left", "next"))+`).textContent === "full"`)
	levels := value[[][]float64](p, `levels`)
	between := 0
	for i, level := range levels {
		if level[0] > 0 && level[0] < 1000 {
			between++
		}
		if i > 1 && level[0] < levels[i-1][0]-2 { // 20 ms between two answers
			t.Errorf("it falls from %v to %v while it refills", levels[i-1], level)
		}
		if math.Abs(level[0]-10*level[1]) > 1 {
			t.Errorf("it says %.0f of 1000, and its bar is at %.1f%%", level[0], level[1])
		}
	}
	if between < 4 || len(levels) < 6 || levels[1][0] > 900 {
		t.Errorf("it was seen at %v", levels)
	}
}

func TestLimitsAreChangedAndKept(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url, calm)
	for _, c := range []struct{ lane, text, code string }{
		{"right", "7/h sliding-window", "headgate.SlidingWindow(7, time.Hour)"},
		{"left", "3/10m burst 8 stepped", "headgate.SteppedTokenBucket(3, 10*time.Minute).Burst(8)"},
	} {
		p.setLimit(c.lane, c.text)
		if got := p.text(part(c.lane, "go")); got != c.code {
			t.Errorf("%s in Go is %s, want %s", c.text, got, c.code)
		}
	}
	p.enter("#burst", "5")
	p.click("#send-burst")
	p.until("5 are allowed", number("left", "allowed")+" === 5")

	// New numbers keep the fraction that is used, rounded up: 5 of 8 become 4 of 6. Another visitor
	// sees them.
	p.setLimit("left", "3/10m burst 6 stepped")
	p.until("2 of 6 are left", number("left", "remaining")+" === 2")
	again := open(t, url, calm)
	again.until("the limit is kept", number("left", "remaining")+` === 2 && document.querySelector("#left-limit").value === "3/10m burst 6 stepped"`)
	if got := value[string](again, `document.querySelector("#right-algorithm").value`); got != "sliding-window" {
		t.Errorf("the form on the right shows %s", got)
	}
	again.setLimit("left", "3/10m burst 9 stepped")
	p.until("the first page hears of it", `document.querySelector("#left-limit").value === "3/10m burst 9 stepped"`)
}

// The list changes the algorithm in the text of the limit, and shows the one that is there.
func TestListOfAlgorithms(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	form := func() string {
		return value[string](p, `document.querySelector("#left-algorithm").value + ": " + document.querySelector("#left-limit").value`)
	}
	p.enter("#left-limit", "5/90s burst 20")
	for _, c := range []struct{ choose, want string }{
		{"stepped", "stepped: 5/90s burst 20 stepped"},
		{"token-bucket", "token-bucket: 5/90s burst 20"},
		{"sliding-log", "sliding-log: 5/90s sliding-log"},
		{"fixed-window", "fixed-window: 5/90s fixed-window"},
		{"token-bucket", "token-bucket: 5/90s"},
	} {
		p.choose("#left-algorithm", c.choose)
		if got := form(); got != c.want {
			t.Errorf("%s: the form has %s, want %s", c.choose, got, c.want)
		}
	}
	p.enter("#left-limit", "7/h sliding-window")
	if got := form(); got != "sliding-window: 7/h sliding-window" {
		t.Errorf("what is typed makes the form %s", got)
	}
	p.setLimit("right", "9/h fixed-window")
	if got := form(); got != "sliding-window: 7/h sliding-window" {
		t.Errorf("what was typed became %s when the other limit changed", got)
	}
	p.setLimit("left", "7/h sliding-window")
}

func TestBadNumberIsOneClearError(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	p.enter("#right-limit", "many/s")
	p.click(part("right", "apply"))
	p.until("the error is shown", `!document.querySelector("#right-error").hidden`)
	if got := p.text("#right-error"); got != `the right limit "many/s": count is "many"; want a whole or decimal number, at least 1 in 285 years and at most 9007199254740991, without exponent` {
		t.Errorf("the error is %s", got)
	}
	if got := value[string](p, `document.activeElement.id + " " + document.activeElement.getAttribute("aria-invalid")`); got != "right-limit true" {
		t.Errorf("the focus is on %s", got)
	}
	if got := p.text(part("right", "text")); got != "10/10s fixed-window" {
		t.Errorf("the limit became %s", got)
	}
	p.setLimit("right", "4/10s sliding-log")
	p.until("the error is gone", `document.querySelector("#right-error").hidden`)
	if p.refusals != 1 {
		t.Errorf("%d requests were refused, want 1", p.refusals)
	}
	p.enter("#burst", "1e9")
	p.click("#send-burst")
	p.until("traffic is checked, too", `document.querySelector("#traffic-error").textContent === 'Requests: enter a whole number from 1 to 10,000, not "1e9".'`)
}

// windowTimes is a store that records in which fixed windows requests were decided.
type windowTimes struct {
	headgate.Store
	mu      sync.Mutex
	windows []int64
}

func (s *windowTimes) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Limit.Algorithm() == headgate.AlgorithmFixedWindow && r.Cost > 0 {
		s.mu.Lock()
		s.windows = append(s.windows, time.Now().UnixMicro()/r.Limit.Period().Microseconds())
		s.mu.Unlock()
	}
	return s.Store.Take(ctx, r)
}

// onTime reports whether the last 20 requests were decided 10 before an edge and 10 after it. A
// machine that is busy may be too late for that.
func (s *windowTimes) onTime() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.windows) < 20 {
		return false
	}
	last := s.windows[len(s.windows)-20:]
	return last[0] == last[9] && last[10] == last[0]+1 && last[19] == last[10]
}

// A fixed window of n grants about 2n around its edge, a sliding log n at most, of
// the same traffic.
func TestWindowsEdge(t *testing.T) {
	t.Parallel()
	store := &windowTimes{Store: headgate.NewMemory()}
	p := open(t, serveDemo(t, store), calm)
	p.setLimit("left", "10/2s fixed-window")
	p.setLimit("right", "10/2s sliding-log")
	for try := 1; !store.onTime(); try++ {
		if try > 20 {
			t.Fatalf("the bursts were decided in the windows %v", store.windows)
		}
		p.click("#reset")
		p.until("it is reset", number("left", "allowed")+" === 0")
		p.click("#edge")
		p.until("both bursts are sent", `document.querySelector("#edge").getAttribute("aria-disabled") === "false" &&
			`+number("left", "allowed")+" + "+number("left", "denied")+" === 20")
	}
	if got := p.text(part("left", "most")); got != "20 of 10" {
		t.Errorf("the fixed window shows %q, want 20 of 10", got)
	}
	if got := p.text(part("right", "most")); got != "10 of 10" {
		t.Errorf("the sliding log shows %q, want 10 of 10", got)
	}
	if got := p.text(part("left", "over")); got != "2.0 times" {
		t.Errorf("the fixed window is said to be %q over", got)
	}
}

func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	focused := func() string { return value[string](p, `document.activeElement.id`) }
	press := func(keys string) { p.do(chromedp.KeyEvent(keys)) }

	// Every control is reached by Tab, shows its focus, and has a name.
	seen := map[string]bool{}
	for range 36 {
		press("\t")
		if id := focused(); id != "" {
			seen[id] = true
		}
		problem := value[string](p, `(() => {
			const e = document.activeElement;
			if (e === document.body) return "";
			const name = e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent;
			if (!name.trim()) return "no name: " + e.outerHTML;
			if (getComputedStyle(e).outlineStyle === "none") return "no ring: " + e.outerHTML;
			return "";
		})()`)
		if problem != "" {
			t.Error(problem)
		}
	}
	for _, id := range []string{
		"one", "burst", "send-burst", "rate", "stream", "edge", "reset", "copy-link", "tour-start",
		"left-algorithm", "left-limit", "right-algorithm", "right-limit",
	} {
		if !seen[id] {
			t.Errorf("Tab does not reach %s", id)
		}
	}

	p.do(chromedp.Focus(chromedp.CSS("#one")))
	press("\r")
	p.until("Enter sends one", number("left", "allowed")+" === 1")
	p.do(chromedp.Focus(chromedp.CSS("#right-algorithm")))
	press(kb.ArrowDown + kb.ArrowDown) // from fixed window over sliding window to sliding log
	press("\t")
	p.do(run(`document.activeElement.select()`))
	press("12/9s" + " sliding-log")
	press("\r")
	p.until("Enter applies", `document.querySelector(`+quoted(part("right", "text"))+`).textContent === "12/9s sliding-log"`)
	if got := value[int](p, number("left", "allowed")); got != 1 {
		t.Errorf("%d are allowed, want 1: keys are text in a field", got)
	}
}

func TestPhone(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), calm)
	wide := func(what string) {
		t.Helper()
		if w := value[int](p, `document.documentElement.scrollWidth`); w > 360 {
			t.Errorf("%s: the page is %d wide", what, w)
		}
	}
	wide("at first")
	p.do(run(`document.querySelectorAll(".fold, #traffic").forEach((e) => { e.open = true; }); document.querySelector("#more").click()`))
	wide("unfolded")
	p.setLimit("left", "123456789012/d fixed-window")
	p.enter("#burst", "10000")
	p.click("#send-burst")
	p.until("many are allowed", number("left", "allowed")+" === 10000")
	wide("with large numbers")
	p.enter(part("left", "limit"), strings.Repeat("9", 60))
	p.click(part("left", "apply"))
	p.until("an error", `!document.querySelector("#left-error").hidden`)
	wide("with a long error")
	small := value[string](p, `[...document.querySelectorAll("button, select, input:not([type=range])")].filter(e => e.getBoundingClientRect().height > 0 &&
		e.getBoundingClientRect().height < 18).map(e => e.id).join()`)
	if small != "" {
		t.Errorf("too small for a finger: %s", small)
	}
}

func TestDark(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	for scheme, dark := range map[string]bool{"light": false, "dark": true} {
		p.do(prefers("prefers-color-scheme", scheme))
		got := value[[]float64](p, `(() => {
			const light = (c) => {
				const [r, g, b] = c.match(/[\d.]+/g).map((v) => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
				return .2126 * r + .7152 * g + .0722 * b;
			};
			const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
			const card = light(getComputedStyle(document.querySelector(".card")).backgroundColor);
			const text = (s) => ratio(card, light(getComputedStyle(document.querySelector(s)).color));
			const on = (of, ground) => { // of one custom property on another
				const probe = document.body.appendChild(document.createElement("p"));
				probe.style.color = `+"`var(--${of})`"+`;
				probe.style.background = `+"`var(--${ground})`"+`;
				const style = getComputedStyle(probe);
				const got = ratio(light(style.color), light(style.backgroundColor));
				probe.remove();
				return got;
			};
			const rings = Math.min(...["card", "ground", "sunk", "denied-soft"].map((ground) => on("focus", ground)));
			return [card, text("h2"), text(".quiet"), text(".sign.allowed"), text(".sign.denied"),
				on("denied", "denied-soft"), rings * 1.5,
				// Graphics need 3.
				...["allowed-fill", "s1-fill"].map((fill) => on(fill, "card") * 1.5),
				...["allowed-fill", "denied"].map((fill) => on(fill, "accent-soft") * 1.5)];
		})()`)
		if (got[0] < 0.2) != dark {
			t.Errorf("%s: a card has the luminance %.2f", scheme, got[0])
		}
		for i, contrast := range got[1:] {
			if contrast < 4.5 {
				t.Errorf("%s: text %d has a contrast of %.1f, want at least 4.5", scheme, i, contrast)
			}
		}
	}
}

func TestLessMotion(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), prefers("prefers-reduced-motion", "reduce"))
	p.click("#one")
	p.until("it is seen nevertheless", number("left", "allowed")+" === 1 && "+number("left", "remaining")+" === 9")
	p.click("#tour-start")
	if got := value[string](p, `getComputedStyle(document.querySelector("#tour")).animationName`); got != "none" {
		t.Errorf("the tour moves: %s", got)
	}
}

// Ten thousand a second: what is due is decided, and the page goes on drawing meanwhile. It asks in
// batches, ten a second if the machine is fast enough, so the test counts batches, and the time of
// the processor that a frame takes.
func TestFastStream(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.enter("#rate", "10000")
	p.do(run(`window.seen = {batches: 0, asked: 0, due: 0, most: 0, frames: 0};
		(function frame() { seen.frames++; requestAnimationFrame(frame); })();
		const send = fetch;
		window.fetch = (path, ...options) => { // what was decided late is not made up for
			if (path === "/api/requests") {
				const now = performance.now();
				const due = 10 * Math.min(now - seen.asked, 250);
				seen.due += due;
				seen.most = Math.max(seen.most, due);
				seen.asked = now;
				seen.batches++;
			}
			return send(path, ...options);
		};`))
	p.click("#stream")
	p.until("it runs", number("left", "denied")+" > 0")
	look := "[" + number("left", "allowed") + " + " + number("left", "denied") +
		", seen.due, seen.batches, seen.frames, seen.most]"
	p.do(call(performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"}))
	worked := p.busy()
	before := value[[]float64](p, look)
	p.until("ten batches are sent", `seen.batches > `+fmt.Sprint(before[2]+10))
	after := value[[]float64](p, look)
	decided, due := after[0]-before[0], after[1]-before[1]
	batches, frames := after[2]-before[2], after[3]-before[3]
	worked = p.busy() - worked
	t.Logf("decided %.0f of %.0f due; drew %.0f frames in %.0f batches and %.3f s of the processor",
		decided, due, frames, batches, worked)
	if math.Abs(decided-due) > 0.1*due+2*after[4] { // a batch may be under way at each look
		t.Errorf("%.0f were decided of %.0f due", decided, due)
	}
	if frames < batches/2 {
		t.Errorf("%.0f frames were drawn during %.0f batches", frames, batches)
	}
	if worked <= 0 || worked > 0.1*frames {
		t.Errorf("%.0f frames took %.3f s of the processor", frames, worked)
	}
	p.click("#stream")
	p.until("it stops", `document.querySelector("#stream").getAttribute("aria-pressed") === "false"`)
	if n := value[int](p, `document.querySelectorAll("*").length`); n > 600 {
		t.Errorf("the page has grown to %d elements", n)
	}
}

// busy returns for how many seconds the processor has worked on tasks of the page, or of pages that
// share its process.
func (p *page) busy() float64 {
	p.t.Helper()
	var tasks float64
	p.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		got, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
		for _, m := range got.Metrics {
			if m.Name == "TaskDuration" {
				tasks = m.Value
			}
		}
		return err
	}))
	return tasks
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store, err := redisstore.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	p := open(t, serveDemo(t, store), calm)
	p.setLimit("left", "30/d fixed-window")
	p.enter("#burst", "50")
	p.click("#send-burst")
	p.until("30 are allowed", number("left", "allowed")+" === 30 && "+number("left", "denied")+" === 20")
	if keys, err := server.Do(t.Context(), "KEYS", "*demo*"); err != nil || !strings.Contains(keys, "left") {
		t.Errorf("Redis has the keys %q, %v", keys, err)
	}
	p.enter("#rate", "200")
	p.click("#stream")
	p.until("it streams", number("left", "denied")+" > 100")
	p.click("#stream")
	p.until("it stops", `document.querySelector("#stream").getAttribute("aria-pressed") === "false"`)
}
