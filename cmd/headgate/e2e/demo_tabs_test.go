package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate"
)

// counts are the numbers of both lanes, as a person reads them.
const counts = `["left", "right"].flatMap((lane) => ["text", "allowed", "denied", "most", "remaining"].map((part) =>
	document.querySelector("#" + lane + " [data-part=" + part + "]").textContent)).join(" | ")`

// The server has the numbers, so a reload and a second tab show the same.
func TestReloadAndTwoTabsAgree(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url)
	p.setLimit("left", "1/h burst 10")
	p.setLimit("right", "7/h sliding-log")
	p.click("#send-burst")
	p.until("the burst is decided", number("left", "allowed")+" === 10 && "+number("right", "denied")+" === 13")
	const want = "1/h burst 10 | 10 | 10 | 10 of 11 | 0 | 7/h sliding-log | 7 | 13 | 7 of 7 | 0"
	again := open(t, url)
	again.until("the second tab agrees", counts+" === "+quoted(want))
	again.do(run(pixels))
	again.until("it has the past, too", `pixels("left", "allowed")[0] > 20 && pixels("left", "denied")[1] > 20`)
	p.do(chromedp.Navigate(url + "/?again"))
	p.until("it is loaded again", `document.documentElement.dataset.ready === "true" && location.search === "?again"`)
	p.until("the first tab agrees after a reload", counts+" === "+quoted(want))

	again.click("#one")
	p.until("the first tab sees what the second sends", number("left", "denied")+" === 11 && "+number("right", "denied")+" === 14")
	again.setLimit("left", "5/h fixed-window")
	p.until("it says that the limit was changed", `document.querySelector("#status").textContent === "The left limit was changed in another tab or program to 5/h fixed-window"`)
	again.click("#reset")
	p.until("a reset is one for all", counts+` === "5/h fixed-window | 0 | 0 | – | 5 | 7/h sliding-log | 0 | 0 | – | 7"`)
}

// The page names the endpoints for programs, at its own address, and they respond.
func TestEndpointsAreNamed(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url, calm)
	text := strings.Join(strings.Fields(p.text(".help")), " ")
	for _, want := range []string{"curl -X POST " + url + "/test", url + "/config", "POST /config changes the left limit to a stepped bucket"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	p.do(run(`fetch("/config", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"capacity": 5, "refill_interval": 3600}'})`))
	p.until("the page shows it", `document.querySelector(`+quoted(part("left", "text"))+`).textContent === "1/h burst 5 stepped"`)
	p.do(run(`fetch("/test", {method: "POST"})`))
	p.until("it counts", number("left", "allowed")+" === 1 && "+number("right", "allowed")+" === 0 && "+number("left", "remaining")+" === 4")
}
