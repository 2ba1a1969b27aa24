package config

import (
	"strings"
	"testing"
)

const sesame = "open-sesame-31415"

// The secrets of a file are in no text that the server shows.
func TestSecretsAreHidden(t *testing.T) {
	file := "store: redis://user:" + sesame + "-store@h\nkey_secret: " + sesame + "-key-secret\n" +
		"tls: {cert: /" + sesame + ".crt, key: /" + sesame + ".key, client_ca: /" + sesame + ".ca}\n" +
		"api: {tokens: [" + sesame + ", " + sesame + "-longer, seven77]}\n" +
		"rules: [{name: r, limits: 1/h}]\n"
	c, err := Parse("f", []byte(file), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                           "",
		"the office":                 "the office",
		"as " + sesame + " says":     "as (hidden) says",
		sesame + "-longer":           "(hidden)",
		c.Store:                      "redis://(hidden)@h",
		"x " + c.KeySecret:           "x (hidden)",
		"in /" + sesame + ".crt":     "in (hidden)",
		"in /" + sesame + ".key":     "in (hidden)",
		"in /" + sesame + ".ca":      "in (hidden)",
		"redis://:p@h and http://u@": "redis://(hidden)@h and http://(hidden)@",
		"seven77":                    "seven77", // too short: it would hide words
	} {
		if got := c.Masked(text); got != want {
			t.Errorf("%q is shown as %q; want %q", text, got, want)
		}
	}
	if report := c.Report(); strings.Contains(report, "sesame") {
		t.Errorf("the report has a secret: %s", report)
	}
	if want := "key_secret: Redis holds hashes instead of keys\n"; !strings.Contains(c.Report(), want) {
		t.Errorf("got %q; want %q in it", c.Report(), want)
	}
	short := sesame[:15]
	if _, err := Parse("f", []byte("key_secret: "+short+"\n"), Options{}); err == nil ||
		strings.Contains(err.Error(), short) {
		t.Errorf("of a short secret: %v", err)
	}
}

// Each rule and each fault of several files has its own place.
func TestPlaces(t *testing.T) {
	const rule = "rules:\n- {name: a, limits: 5/m}\n- name: b\n  permits: 2\n"
	c, err := Parse("a.yaml", []byte(rule), Options{})
	if err != nil || len(c.Places) != 2 || c.Places[0] != (Place{File: "a.yaml", Line: 2}) ||
		c.Places[1] != (Place{File: "a.yaml", Line: 3}) {
		t.Errorf("the places are %v, %v", c.Places, err)
	}
	_, err = parse([]file{
		{"a.yaml", []byte("rules:\n- {name: r, limits: 9/x}\n- {name: s, limits: 9/m, size: 3}\n")},
		{"b.yaml", []byte("store: 7\n")},
	}, Options{})
	if err == nil {
		t.Fatal("no error")
	}
	faults := strings.Split(err.Error(), "\n")
	for i, want := range []string{"a.yaml:2: rules[0].limits", "a.yaml:3: rules[1].size: ", "b.yaml:1: store: "} {
		if len(faults) != 3 || !strings.HasPrefix(faults[i], want) {
			t.Errorf("the faults are\n%v; want %s", err, want)
		}
	}
}
