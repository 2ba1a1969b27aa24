package demo

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// FuzzInput posts anything to every endpoint. The answer is one line of JSON, a
// refusal says why and changes no limit, and what is accepted works.
func FuzzInput(f *testing.F) {
	paths := []string{"/test", "/config", "/api/requests", "/api/limits"}
	for i, body := range []string{
		"", "capacity=10&refill_rate=2.5&refill_interval=0.1", `{"requests":10}`, `{"left":"1/s burst 10","right":"10/10s fixed-window","reset":true}`,
		`{"requests":"1"}`, `{"capacity":"10","refill_rate":1e3}`, `{"requests":1e3}`, `{"right":"65535/15m sliding-log"}`,
	} {
		f.Add(uint8(i), body)
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		path := paths[int(which)%len(paths)]
		if strings.Contains(body, "at") && path == "/api/requests" {
			return // it may ask for a wait
		}
		contentType := jsonType
		if path == "/config" && !strings.HasPrefix(body, "{") {
			contentType = form
		}
		d := newDemo(t, headgate.NewMemorySize(1000))
		was := [2]headgate.Limit{d.lanes[0].limit, d.lanes[1].limit}
		w := ask(d, http.MethodPost, path, contentType, body)
		if text := w.Body.String(); !json.Valid([]byte(text)) || strings.Count(text, "\n") != 1 {
			t.Fatalf("%s %q: %s", path, body, text)
		}
		switch w.Code {
		case http.StatusOK:
			read[batchAnswer](t, ask(d, http.MethodPost, "/api/requests", jsonType, `{"requests":3}`))
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			var r refusal
			if json.Unmarshal(w.Body.Bytes(), &r) != nil || r.Success || r.Error == "" {
				t.Fatalf("%s %q: %s", path, body, w.Body)
			}
			if is := [2]headgate.Limit{d.lanes[0].limit, d.lanes[1].limit}; is != was {
				t.Fatalf("%s %q: refused, and yet %v became %v", path, body, was, is)
			}
		default:
			t.Fatalf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
	})
}
