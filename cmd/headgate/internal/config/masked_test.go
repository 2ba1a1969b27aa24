package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const sesame = "open-sesame-31415"

// TestSecretsAreHidden: in all spellings of YAML, and the rest of the file is shown.
func TestSecretsAreHidden(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"rules:\n  - {cost: {tokens: {estimate: 2000, output: 4}}}\n",
			"rules:\n  - {cost: {tokens: {estimate: 2000, output: 4}}}\n"},
		{"rules:\n  - cost:\n      tokens:\n        cached: 0\n",
			"rules:\n  - cost:\n      tokens:\n        cached: 0\n"},
		{"rules:\n  - cost: {tokens: {estimate: §}}\n", "rules:\n  - tokens: (hidden)\n"},
		{"rules:\n  - cost: {tokens: {§: 1}}\n", "rules:\n  - tokens: (hidden)\n"},
		{"rules:\n  - {tokens: {estimate: 31415926}}\n", "rules:\n  - tokens: (hidden)\n"},
		{"rules:\n  - cost: {by: {tokens: {input: 31415926}}}\n", "rules:\n  - tokens: (hidden)\n"},
		{"tokens: {input: 31415926}\n", "tokens: (hidden)\n"},
		{"store: redis://:§@h:6379 # §\n# Limits\nrules: []\n", "store: (hidden)\n\nrules: []\n"},
		{"rules: []\nstore: redis://:§@h\n", "rules: []\nstore: (hidden)\n"},
		{"rules: []\nstore: redis://:§@h", "rules: []\nstore: (hidden)"},
		{"store: \"redis://:§@h\"\nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"\"store\": 'redis://:§@h'\nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"'store'  :   redis://:§@h   \nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"store: !!str redis://:§@h\nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"store: >-\n  redis://\n  §\n\nrules: []\n", "store: (hidden)\n\n\n\nrules: []\n"},
		{"store: |\n  §\n  # §\nrules: []\n", "store: (hidden)\n\n\nrules: []\n"},
		{"store: \"redis://:open-ses\\\n  ame-31415@h\"\nrules: []\n", "store: (hidden)\n\nrules: []\n"},
		{"store: \"\\x6fpen-sesame-31415\"\nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"store: redis://:§@h\r\nrules: []\r\n", "store: (hidden)\nrules: []\n"},
		{"? store\n: redis://:§@h\nrules: []\n", "store: (hidden)\n\nrules: []\n"},
		{"store: redis://h\n---\nstore: §\n", notShown},
		{"{store: redis://:§@h, rules: []}\n", "store: (hidden)\n"},
		{`{"store":"redis://:§@h","rules":[]}`, "store: (hidden)"},
		{"{rules: [], trust: [],\n api: [§,\n §], listen: {}}\n", "{rules: [], trust: [],\n api: (hidden)\n\n"},
		{"{\n  \"store\" : \"§\" ,\n  \"api\": {\"tokens\": [\"§\", \"§\"]}\n}\n", "{\n  store: (hidden)\napi: (hidden)\n\n"},
		{"store: ${STORE}\nrules: []\n", "store: ${STORE}\nrules: []\n"},
		{"store: redis://:${P}§@h\nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"api:\n  tokens: [§, \"§\"] # §\n  allow_inline_limits: true\n", "api: (hidden)\n\n\n"},
		{"api:\n  tokens:\n  - § # §\n  # - §\n  - '§'\nrules: []\n", "api: (hidden)\n\n\n\n\nrules: []\n"},
		{"api: {allow_inline_limits: true, tokens: [§]}\n", "api: (hidden)\n"},
		{"api: §\nrules: []\n", "api: (hidden)\nrules: []\n"},
		{"tls: {cert: /§, key: §, client_ca: §}\ntrust: 10.0.0.0/8\n", "tls: (hidden)\ntrust: 10.0.0.0/8\n"},
		{"tls:\n  cert: §\n  key: §\nlisten: {http: ':80'}\n", "tls: (hidden)\n\n\nlisten: {http: ':80'}\n"},
		{"rules:\n- name: &n §\n  limits: 5/m\napi: {tokens: [*n]}\n", notShown},
		{"rules:\n- &r {name: a, limits: &l [§]}\n- *r\napi: {tokens: *l}\n", notShown},
		{"api:\n  tokens: &t [§]\nrules: *t\n", "api: (hidden)\n\nrules: *t\n"},
		{"api:\n  <<: {tokens: [§]}\n", "api: (hidden)\n\n"},
		{"<<: {store: §}\nrules: []\n", "<<: (hidden)\nrules: []\n"},
		{"store: §\nstore: §\nrules: []\n", "store: (hidden)\nstore: (hidden)\nrules: []\n"},
		// Wrong files are shown, too, because the error in them is looked for.
		{"stores: §\napi: {token: [§], tokenz: §}\nrules: []\n", "stores: (hidden)\napi: (hidden)\nrules: []\n"},
		{"rules:\n- name: a\n  api: {tokens: [§]}\n", "rules:\n- name: a\n  api: (hidden)\n"},
		{"rules:\n- api:\n    tokens: [§]\n  name: a\n- name: b\nlisten: {}\n", "rules:\n- api: (hidden)\n\n  name: a\n- name: b\nlisten: {}\n"},
		{"§\n", notShown},
		{"- §\n", notShown},
		{"# redis://u:§@h and §\nstore: redis://u:§@h\n", "# redis://(hidden)@h and open-sesame-31415\nstore: (hidden)\n"},
		{"# the token is §\napi: {tokens: [§]}\n", "# the token is (hidden)\napi: (hidden)\n"},
		{"# seven77 and eight888\napi: {tokens: [seven77, eight888]}\n", "# seven77 and (hidden)\napi: (hidden)\n"},
		{"\uFEFFstore: §\nrules: []\n", "store: (hidden)\nrules: []\n"},
		{"rules:\n- name: ключ\u2028  limits: 5/m\nstore: §\n", notShown},
		{"rules: []\rstore: §\r", notShown},
		{"{rules: [{name: ключ 鍵}], store: \"§\"}\n", "store: (hidden)\n"},
		// A value whose end is not clear is not shown.
		{"store: [§\n", notShown},
		{"\tstore: §\n", notShown},
		{"api: {tokens: {§: 1}}\n", "api: (hidden)\n"},
		{"[store]: §\n", notShown},
		{"store: §\nrules: *unknown\n", notShown},
		{"store: §\xff\n", notShown},
		{"", ""},
		{"# nothing\n", "# nothing\n"},
		{string(example), string(example)},
	} {
		text := strings.ReplaceAll(c.text, "§", sesame)
		if c.want == string(example) {
			text = c.text
		}
		got := Shown([]byte(text))
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("of\n%s\nis shown\n%s\nwant\n%s", text, got, c.want)
		}
		if !strings.Contains(c.want, sesame) && strings.Contains(got, "sesame") {
			t.Errorf("the secret is shown of\n%s\nas\n%s", text, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") && got != notShown {
			t.Errorf("of\n%s\nlines are missing in\n%s", text, got)
		}
	}
}

// TestShownIsLinear: a long file takes no minute, in one line as programs write JSON, nor one in which
// all is hidden.
func TestShownIsLinear(t *testing.T) {
	var list strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&list, `{"rule":"a","key":"user:%07d","limits":"5/m"},`, i)
	}
	for text, want := range map[string]string{
		`{"overrides":[` + list.String() + `{}],"store":"` + sesame + `"}`: "store: (hidden)",
		"# user:0000007\noverides: [" + list.String() + "{}]\nrules: []\n": "# (hidden)\noverides: (hidden)\nrules: []\n",
	} {
		began := time.Now()
		if got := Shown([]byte(text)); got != want {
			t.Errorf("is shown as %.100q, want %q", got, want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	}
}

// FuzzShown: no secret of a file that is accepted is shown, and what is shown has the same lines.
func FuzzShown(f *testing.F) {
	for _, text := range append(files(f, "wrong.txt"), files(f, "right.txt")...) {
		f.Add(text)
	}
	f.Add(whole)
	f.Add("api: {tokens: [\"abcdefgh\", ijklmnop]}\nstore: >\n redis://:qrstuvwx@h\n")
	f.Add("{\"api\":{\"tokens\":[\"abcdefgh\"]},\"store\":\"redis://:qrstuvwx@h\"}")
	f.Add("rules:\n- name: &a abcdefgh\n  limits: 5/m\napi:\n  tokens: [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		shown := Shown([]byte(text))
		if shown == notShown {
			return
		}
		if lines := strings.Count(text, "\n"); strings.Count(shown, "\n") < lines && !strings.Contains(text, "\r") {
			t.Errorf("%q is shown as %q, which has fewer lines", text, shown)
		}
		c, err := Parse("f.yaml", []byte(text), Options{Env: func(string) (string, bool) { return "", false }})
		if err != nil {
			return
		}
		secrets := append([]string{c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA}, c.API.Tokens...)
		if _, rest, ok := strings.Cut(c.Store, "@"); ok && rest != "" {
			secrets = append(secrets, c.Store)
		}
		for _, s := range secrets {
			if len(s) >= minSecret && !strings.Contains(Hidden, s) && strings.Contains(shown, s) {
				t.Errorf("%q is shown as %q, which has the secret %q", text, shown, s)
			}
		}
	})
}

// TestFaultPlaces: each fault of several files has its own place and text.
func TestFaultPlaces(t *testing.T) {
	_, err := parse([]file{
		{"a.yaml", []byte("rules:\n  - {name: r, limits: 9/x}\n  - {name: s, limits: 9/m, size: 3}\n")},
		{"b.yaml", []byte("store: 7\n")},
	}, Options{})
	var got strings.Builder
	for _, f := range Faults(err) {
		fmt.Fprintf(&got, "%s %d %.20s\n", f.File, f.Line, f.Text)
	}
	if want := "a.yaml 2 rules[0].limits"; !strings.HasPrefix(got.String(), want) || strings.Count(got.String(), "\n") != 3 ||
		!strings.Contains(got.String(), "\na.yaml 3 rules[1].size: ") || !strings.Contains(got.String(), "\nb.yaml 1 store: ") {
		t.Errorf("the faults are\n%s of\n%v", got.String(), err)
	}
	if f := Faults(errors.New("no file")); len(f) != 1 || f[0].Line != 0 || f[0].File != "" || f[0].Text != "no file" {
		t.Errorf("of an error without a place: %+v", f)
	}
}

func TestPlaces(t *testing.T) {
	c, err := Parse("a.yaml", []byte("rules:\n- {name: a, limits: 5/m}\n- name: b\n  permits: 2\n"), Options{})
	if err != nil || len(c.Places) != 2 || c.Places[0] != (Place{File: "a.yaml", Line: 2}) || c.Places[1] != (Place{File: "a.yaml", Line: 3}) {
		t.Errorf("the places are %v, %v", c.Places, err)
	}
	for text, want := range map[string]Place{
		"\n\nrules: [{name: a}]": {File: "a.yaml", Line: 3}, "a: [": {File: "a.yaml", Line: 2}, "\nstore: postgres://u:p@h": {File: "a.yaml", Line: 2},
	} {
		_, err := Parse("a.yaml", []byte(text), Options{})
		if err == nil {
			t.Fatalf("%q is accepted", text)
		}
		if p := Faults(err)[0].Place; p != want {
			t.Errorf("the place of %v is %v", err, p)
		}
	}
	_, err = Load([]string{"/does/not/exist"}, Options{})
	if p := Faults(err)[0].Place; p.Line > 0 {
		t.Errorf("the place of %v is %v", err, p)
	}
}
