package e2e

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// A link carries the limits and the numbers of the traffic.
func TestLink(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url, calm)
	p.do(run(`window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text); }`))
	p.setLimit("left", "3/10m burst 8 stepped")
	p.setLimit("right", "7/h sliding-window")
	p.enter("#burst", "33")
	p.enter("#rate", "44")
	p.click("#copy-link")
	p.until("it says so", `document.querySelector("#copy-link").textContent === "Copied"`)
	link := value[string](p, `copied[0]`)
	if want := url + "/#left=3/10m+burst+8+stepped&right=7/h+sliding-window&burst=33&rate=44"; link != want {
		t.Fatalf("the link is %s, want %s", link, want)
	}
	fresh := serveDemo(t, headgate.NewMemory())
	again := open(t, fresh+strings.TrimPrefix(link, url), calm)
	const restored = `["#left [data-part=text]", "#right [data-part=text]"].map((s) => document.querySelector(s).textContent)
		.concat(["#burst", "#rate"].map((s) => document.querySelector(s).value)).join(" | ")`
	if got := value[string](again, restored); got != "3/10m burst 8 stepped | 7/h sliding-window | 33 | 44" {
		t.Errorf("the link restores %s", got)
	}
	if got := value[string](again, `location.href`); got != fresh+"/" {
		t.Errorf("the address is %s, and a reload would begin again", got)
	}
	again.do(run(`location.hash = "#right=1/d"`))
	again.until("a link in the same tab", `document.querySelector("#right [data-part=text]").textContent === "1/d"`)
}

func TestBadLink(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url+"/#left=10/y", calm)
	if got := p.text("#traffic-error"); !strings.HasSuffix(got, `: the left limit "10/y": period is "y"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w), or month or year`) {
		t.Errorf("the address of the page: %s", got)
	}
	const unchanged = "1/s burst 10 | 0 | 0 | – | 10 | 10/10s fixed-window | 0 | 0 | – | 10"
	p.until("the page has the limits", counts+" === "+quoted(unchanged)) // some errors need no server
	for link, why := range map[string]string{
		"#left=10/x":                      `the left limit "10/x": period is "x"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w), or month or year`,
		"#left=5/s&right=0/s":             `the right limit "0/s": count is 0; want at least 1, or "0/d fixed-window" to deny all`,
		"#left=5/s&speed=9":               `it names "speed"; want left, right, burst and rate`,
		"#left=5/s&burst=many":            `burst is "many"; want a whole number from 1 to 10000`,
		"#rate=10001":                     `rate is "10001"; want a whole number from 1 to 10000`,
		"#left=5/s&left=6/s":              `it names left twice`,
		"#left=%3Cimg+src%3Dx%3E&rate=10": `the left limit is "<img src=x>"; want a count and a period, such as 100/m`,
	} {
		p.do(run(`document.querySelector("#traffic-error").textContent = ""; location.hash = ` + quoted(link)))
		p.until("the error is shown", `document.querySelector("#traffic-error").textContent !== ""`)
		got, want := p.text("#traffic-error"), "The link is not valid, so the limits are unchanged: "+why
		if strings.Contains(link, "%3C") { // which words the parser chooses is its own business
			got, want = got[:min(len(got), 80)], want[:80]
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", link, got, want)
		}
		if got := value[string](p, counts); got != unchanged {
			t.Errorf("%s: %s", link, got)
		}
		if n := value[int](p, `document.querySelectorAll(".problem:not([hidden])").length + document.querySelectorAll("img").length`); n != 2 {
			t.Errorf("%s: %d messages and images, want one of each", link, n)
		}
	}
}

// Where a page may not copy, the link is in the address.
func TestLinkThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url, calm)
	p.do(run(`navigator.clipboard.writeText = async () => { throw new Error("no"); }`))
	p.click("#one")
	p.until("it counts", number("left", "allowed")+" === 1")
	p.click("#copy-link")
	p.until("it says so", `document.querySelector("#copy-link").textContent === "Copy the address"`)
	if got := value[string](p, `location.href`); got != url+"/#left=1/s+burst+10&right=10/10s+fixed-window&burst=20&rate=10" {
		t.Errorf("the address is %s", got)
	}
	if got := value[int](p, number("left", "allowed")); got != 1 {
		t.Errorf("%d are allowed, want 1: nothing begins again", got)
	}
}
