package replay

import (
	"strings"
	"testing"
)

const (
	iisFields        = "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status"
	cloudFrontFields = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent)"
)

func TestW3C(t *testing.T) {
	for _, c := range []struct{ name, fields, line, want string }{
		{"IIS", iisFields, "2025-12-17 09:03:01 198.18.9.9 GET /a x=1 443 - 198.18.0.1 Mozilla/5.0+(X11) https://x/ 200", "0|198.18.0.1|GET|/a||https://x/|Mozilla/5.0+(X11)"},
		{"several spaces", iisFields, "2025-12-17  09:03:01 198.18.9.9   GET /a - 443 - 198.18.0.1 - - 200", "0|198.18.0.1|GET|/a|||"},
		{"CloudFront", cloudFrontFields, "2025-12-17\t09:03:01\tFRA2\t5\t198.18.0.1\tGET\tx.org\t/a b\t200\t-\tcurl/8", "0|198.18.0.1|GET|/a b|x.org||curl/8"},
		{"empty column", cloudFrontFields, "2025-12-17\t09:03:01\t\t5\t198.18.0.1\tGET\tx.org\t/a\t200\t\tcurl/8", "0|198.18.0.1|GET|/a|x.org||curl/8"},
		{"quoted column", iisFields, `2025-12-17 09:03:01 198.18.9.9 GET /a - 443 "A User" 198.18.0.1 "Mozilla 5" - 200`, "0|198.18.0.1|GET|/a|||Mozilla 5"},
		{"fraction", iisFields, "2025-12-17 09:03:01.5 198.18.9.9 GET /a - 443 - 198.18.0.1 - - 200", "500000|198.18.0.1|GET|/a|||"},

		{"too few columns", iisFields, "2025-12-17 09:03:01 198.18.9.9", "fewer columns than #Fields names"},
		{"no date", "#Fields: time c-ip", "09:03:01 198.18.0.1", "no time that can be read"},
		{"no #Fields", "#Version: 1.0", "2025-12-17 09:03:01", "before the #Fields of the W3C format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, e := newParser(W3C, everything), newEntry()
			if why := p.parse([]byte(c.fields), e); why != whyHeader || p.known() != strings.HasPrefix(c.fields, "#Fields") {
				t.Errorf("%s is %s, known %v", c.fields, why, p.known())
			}
			got := p.parse([]byte(c.line), e)
			if got == "" {
				got = told(e)
			}
			if got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.line, got, c.want)
			}
		})
	}
}

func FuzzW3CLine(f *testing.F) {
	f.Add(iisFields, []byte(`2025-12-17 09:03:01 198.18.9.9 GET /a - 443 "A User" 198.18.0.1 "Mozilla 5" - 200`))
	f.Add(cloudFrontFields, []byte("2025-12-17\t09:03:01\t\t5"))
	f.Fuzz(func(t *testing.T, fields string, line []byte) {
		p, e := newParser(W3C, everything), newEntry()
		if fields != "" {
			p.parse([]byte(fields), e)
		}
		if len(line) > 0 {
			p.parse(line, e)
			parseAnything(t, W3C, line)
		}
	})
}
