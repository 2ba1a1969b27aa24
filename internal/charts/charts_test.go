package charts

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestUPlotIsThatOfTheScript fails if a file of uPlot was changed by hand. scripts/charts --check
// compares the files with those of the registry.
func TestUPlotIsThatOfTheScript(t *testing.T) {
	sums, err := os.ReadFile("uplot/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(string(sums)) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS holds %q", line)
		}
		sum := sha256.Sum256([]byte(read("uplot/" + name)))
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s has the checksum %s; SHA256SUMS has %s; run scripts/charts", name, got, want)
		}
		listed++
	}
	if listed != 3 {
		t.Errorf("SHA256SUMS lists %d files; want the 3 of scripts/charts", listed)
	}
}

func TestUPlotIsOfTheVersionOfTheScript(t *testing.T) {
	script, err := os.ReadFile("../../scripts/charts")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^version=(\S+)$`).FindSubmatch(script)
	if version == nil {
		t.Fatal("scripts/charts names no version")
	}
	head, _, _ := strings.Cut(JS(), "uPlot=function")
	if !strings.Contains(head, "v"+string(version[1])) {
		t.Errorf("uPlot is not of version %s", version[1])
	}
}

func TestAllScriptsAreInJS(t *testing.T) {
	entries, err := files.ReadDir("js")
	if err != nil {
		t.Fatal(err)
	}
	all := JS()
	for _, e := range entries {
		if !strings.Contains(all, plain(strings.TrimSuffix(e.Name(), ".js"))) {
			t.Errorf("js/%s is not in JS()", e.Name())
		}
	}
	if !strings.Contains(all, "The MIT License") {
		t.Error("the licence of uPlot is not in JS()")
	}
}

// A plain script imports and exports nothing: a browser would refuse all of it.
func TestModulesAreMadePlain(t *testing.T) {
	if found := regexp.MustCompile(`(?m)^(import|export)\b.*`).FindAllString(JS(), -1); found != nil {
		t.Errorf("the script holds %q", found)
	}
}

// TestNothingIsEvaluated finds what a policy of default-src 'self' forbids.
func TestNothingIsEvaluated(t *testing.T) {
	forbidden := `\beval\(|new Function\(|innerHTML|setAttribute\("style"|\.onclick|</script`
	if found := regexp.MustCompile(forbidden).FindAllString(JS(), -1); found != nil {
		t.Errorf("the scripts hold %q", found)
	}
	outside := regexp.MustCompile(`url\(|@import|https?:`)
	if found := outside.FindAllString(CSS(), -1); found != nil {
		t.Errorf("the style sheet holds %q", found)
	}
}
