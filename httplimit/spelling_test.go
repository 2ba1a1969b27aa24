package httplimit_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/httplimit"
)

// Each of these reads a request as a common framework does, and returns the session that the
// client is in, or its token. The frameworks read fields as Latin-1, but Django reads UTF-8.
var frameworks = map[string]func(*http.Request) string{
	"net/http": func(r *http.Request) string {
		c, err := r.Cookie("session")
		if err != nil {
			return ""
		}
		return c.Value
	},
	"Express, cookie 0.6": func(r *http.Request) string { // first one; a quote costs two bytes
		return pick(latin1(r), true, func(v string) string {
			if strings.HasPrefix(v, `"`) {
				v = v[1:max(1, len(v)-1)]
			}
			return decoded(v)
		})
	},
	"Express, cookie 0.7": func(r *http.Request) string {
		return pick(latin1(r), true, func(v string) string {
			if len(v) > 1 && strings.HasPrefix(v, `"`) && strings.HasSuffix(v, `"`) {
				v = v[1 : len(v)-1]
			}
			return decoded(v)
		})
	},
	"Starlette": func(r *http.Request) string { return pick(latin1(r), false, unquoted) },
	"Django": func(r *http.Request) string {
		return pick(strings.ToValidUTF8(r.Header.Get("Cookie"), "\ufffd"), false, unquoted)
	},
	"http.cookies": func(r *http.Request) (session string) { // of aiohttp
		text := r.Header.Get("Cookie")
		for m := pair.FindStringSubmatch(text); m != nil; m = pair.FindStringSubmatch(text) {
			switch {
			case m[2] == "":
				return "" // to it, no cookie is valid then
			case m[1] == "session":
				session = unquoted(m[3])
			}
			text = text[len(m[0]):]
		}
		return session
	},
	"FastAPI": func(r *http.Request) string {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "bearer") {
			return ""
		}
		return strings.TrimSpace(latin1Text(token))
	},
	"Express, a pattern": func(r *http.Request) string {
		m := regexp.MustCompile(`^(?i:bearer)[\s\x{a0}]+(\S+?)[\s\x{a0}]*$`).
			FindStringSubmatch(latin1Text(r.Header.Get("Authorization")))
		if m == nil {
			return ""
		}
		return m[1]
	},
}

// pair is what http.cookies takes for a cookie.
var pair = regexp.MustCompile(`^\s*([\w!#%&'~><@,:/$*+.^|)(?}{=\x60-]+?)` +
	`(\s*=\s*("(?:[^\\"]|\\.)*"|[\w!#%&'~><@,:/$*+.^|)(?}{=\[\]\x60-]*))?\s*(?:\s+|;|$)`)

func latin1Text(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func latin1(r *http.Request) string { return latin1Text(strings.Join(r.Header["Cookie"], "; ")) }

// pick returns the first or the last cookie session of a field.
func pick(field string, first bool, read func(string) string) (session string) {
	found := false
	for pair := range strings.SplitSeq(field, ";") {
		name, value, ok := strings.Cut(pair, "=")
		if ok && strings.TrimSpace(name) == "session" && (!first || !found) {
			session, found = read(strings.TrimSpace(value)), true
		}
	}
	return session
}

func decoded(s string) string { // as decodeURIComponent, and s if it fails
	text, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return text
}

func unquoted(s string) string { // as http.cookies._unquote
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	return regexp.MustCompile(`\\(?:([0-3][0-7][0-7])|(.))`).
		ReplaceAllStringFunc(s[1:len(s)-1], func(e string) string {
			if code, err := strconv.ParseUint(e[1:], 8, 8); err == nil && len(e) == 4 {
				return string(rune(code))
			}
			return e[1:]
		})
}

// However a client writes its cookie or its token, what a framework takes for the same one has the
// same key. Requests with several different cookies share another.
func TestSpellingsOfACredential(t *testing.T) {
	keys := func(r *http.Request) (cookie, token string) {
		return httplimit.Key(httplimit.Cookie("session"))(r),
			httplimit.Key(httplimit.Header("Authorization"))(r)
	}
	var accepted map[string]bool
	var cookie, token string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		accepted = make(map[string]bool)
		for name, read := range frameworks {
			accepted[name] = read(r) == "REAL"
		}
		cookie, token = keys(r)
	}))
	defer server.Close()
	send := func(field, value string) {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		r.Header[field] = []string{value}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
	}
	random := rand.New(rand.NewPCG(1, 3))
	seen := make(map[string]int)
	cookies := []string{
		"session=REAL", "session=   REAL", "session=%52EAL", "session=RE%41L", `session="\122EAL"`,
		`session="REAL"`, `session="REALx`, "session=r1; session=REAL", "session=REAL; session=r1",
		"session=REAL\xa0", "session=\x85REAL", "session =REAL", "\xa0session=REAL",
		"session=r2; \xc2\xa0session=REAL", "\xe2\x80\x80session=REAL", "session=REAL j=1",
		`session="REAL" j=1`, "session=; session=REAL", `session="%52EAL"`,
		"session=REAL; session=REAL",
		"session=r1 session=REAL", "session=REAL session=r1", `session="r1"	session = REAL`,
	}
	pieces := []string{
		"session", "=", "=", ";", " ", "REAL", "REAL", "%52", "R", "EAL", `"`, `"`, `\122`, `\"`, `\`,
		"\xa0", "\x85", "\u00a0", "\u2000", "x", "%", "j=1", "%22", "%2552",
		"\t", "[", " session=",
	}
	for range 3000 {
		var text strings.Builder
		text.WriteString("session=")
		for range 1 + random.IntN(6) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		cookies = append(cookies, text.String())
	}
	for _, text := range cookies {
		send("Cookie", text)
		for name, ok := range accepted {
			if ok && cookie != "cookie:REAL" && cookie != "cookie:several" && cookie != "" {
				t.Errorf("%s takes %q for the session; its key is %q", name, text, cookie)
			}
			if ok {
				seen[name]++
			}
		}
	}
	spaces := []string{" ", " ", "  ", "\t", "\xa0", " \xa0 ", "\x85 "}
	for i := range 300 {
		scheme := []byte("bearer")
		for j := range scheme {
			scheme[j] -= byte(random.IntN(2)) * ('a' - 'A')
		}
		text := string(scheme) + spaces[i%len(spaces)] + "REAL" + spaces[random.IntN(len(spaces))]
		send("Authorization", text)
		for name, ok := range accepted {
			if ok && token != "header:bearer "+"REAL" {
				t.Errorf("%s takes %q for the token; its key is %q", name, text, token)
			}
			if ok {
				seen[name]++
			}
		}
	}
	checkSeen(t, seen)
}

func checkSeen(t *testing.T, seen map[string]int) {
	t.Helper()
	for name := range frameworks {
		if seen[name] < 20 {
			t.Errorf("%s has accepted %d requests", name, seen[name])
		}
	}
}
