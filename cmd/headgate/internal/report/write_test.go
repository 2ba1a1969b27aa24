package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// hostile are texts that would be more than text if a page took them for its own.
var hostile = []string{
	"</script><script>alert(1)</script>", "<!--<script>", "]]>", "<img src=x onerror=alert(1)>",
	"{{script}}{{data}}", "${data}", "\u2028\u2029", "a\x00\x1b[31m", "\xff\xfe", "\u202egnp.exe",
	"https://example.com/", `"'&amp;\`,
}

// dataOf returns a Data of requests whose keys are hostile.
func dataOf(t *testing.T, build Build, log string) *Data {
	t.Helper()
	build.Logs = func(int) ([]replay.Log, error) {
		return []replay.Log{{Name: "access.log", Reader: strings.NewReader(log)}}, nil
	}
	build.Made = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	d, err := build.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func hostileLog(t *testing.T) string {
	t.Helper()
	var log strings.Builder
	for i := range 120 {
		text := hostile[i%len(hostile)]
		line, err := json.Marshal(map[string]any{
			"time": time.Unix(1_700_000_000+int64(i/2), 0).UTC().Format(time.RFC3339),
			"ip":   "203.0.113.9", "key": text, "path": "/" + text, "method": text, "status": 200,
		})
		if err != nil {
			t.Fatal(err)
		}
		log.Write(append(line, '\n'))
	}
	return log.String()
}

func hostilePage(t *testing.T) (*Data, string) {
	t.Helper()
	by, err := replay.ParseBy("header:key")
	if err != nil {
		t.Fatal(err)
	}
	d := dataOf(t, Build{
		Kind: KindReplay, Command: "headgate replay " + strings.Join(hostile, " "),
		Limits: []headgate.Limit{headgate.PerMinute(1)},
		Size:   replay.SizeConfig{Reading: replay.Reading{By: by}},
	}, hostileLog(t))
	var page bytes.Buffer
	if err := Write(&page, d); err != nil {
		t.Fatal(err)
	}
	return d, page.String()
}

var dataElement = regexp.MustCompile(
	`(?s)<script type="application/json" id="data">(.*?)</script>`)

func TestTextOfLogsIsText(t *testing.T) {
	d, page := hostilePage(t)
	found := dataElement.FindStringSubmatch(page)
	if found == nil {
		t.Fatal("the page has no data")
	}
	var got struct {
		Command string `json:"command"`
		Replay  struct {
			Detail struct {
				Keys [][]struct {
					Key string `json:"key"`
				} `json:"keys"`
			} `json:"detail"`
		} `json:"replay"`
	}
	if err := json.Unmarshal([]byte(found[1]), &got); err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(d.Command, "\ufffd\ufffd"); got.Command != want {
		t.Errorf("the command is %q, want %q", got.Command, want)
	}
	keys := make([]string, 0, len(hostile))
	for _, k := range got.Replay.Detail.Keys[0] {
		keys = append(keys, k.Key)
	}
	for _, want := range hostile {
		if want := strings.ToValidUTF8(want, "\ufffd\ufffd"); !slices.Contains(keys, want) {
			t.Errorf("key %q is not in the page", want)
		}
	}
	if strings.ContainsAny(found[1], "<>&\u2028\u2029") {
		t.Error("the data holds characters that HTML or a script may take for its own")
	}
	rest := strings.Replace(page, found[0], "", 1)
	for _, text := range []string{"alert(1)", "onerror", "gnp.exe"} {
		if strings.Contains(rest, text) {
			t.Errorf("%q is outside of the data", text)
		}
	}
}

func TestPageNeedsNoOtherHost(t *testing.T) {
	_, page := hostilePage(t)
	page = dataElement.ReplaceAllString(page, "")
	// A comment names the project of uPlot; the other is the name of a language and not fetched.
	for _, known := range []string{
		"https://github.com/leeoniya/uPlot", "http://www.w3.org/2000/svg",
	} {
		page = strings.ReplaceAll(page, known, "")
	}
	outside := regexp.MustCompile(
		`(?i)https?:|url\(|@import|<(link|img|iframe|object)[^>]*\s(src|href)="[^d#]`)
	if found := outside.FindAllString(page, -1); found != nil {
		t.Errorf("the page holds %q", found)
	}
}

func TestPolicyAllowsTheScriptAndTheStyleAlone(t *testing.T) {
	_, page := hostilePage(t)
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).
		FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	directives := map[string]string{}
	for directive := range strings.SplitSeq(html.UnescapeString(policy[1]), "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		directives[name] = sources
	}
	for name, element := range map[string]string{
		"script-src": `(?s)<script>(.*?)</script>`, "style-src": `(?s)<style>(.*?)</style>`,
	} {
		found := regexp.MustCompile(element).FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("the page has %d elements for %s, want 1", len(found), name)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if directives[name] != want {
			t.Errorf("%s is %s, want %s", name, directives[name], want)
		}
	}
	if directives["default-src"] != "'none'" || directives["img-src"] != "data:" {
		t.Errorf("the policy is %s", policy[1])
	}
	if found := regexp.MustCompile(`\s(on\w+|style)="`).FindAllString(page, -1); found != nil {
		t.Errorf("the page has %q, which its policy forbids", found)
	}
}

// TestPageIsBelowOneMegabyte adds what a page has without data to the most that data has.
func TestPageIsBelowOneMegabyte(t *testing.T) {
	var page bytes.Buffer
	if err := write(&page, "{{data}}", "{}"); err != nil {
		t.Fatal(err)
	}
	if most := page.Len() + MaxDataBytes; most >= 1_000_000 {
		t.Errorf("a page may have %d bytes, want less than 1,000,000", most)
	}
}

func TestAllFilesOfThePageAreUsed(t *testing.T) {
	entries, err := page.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, isScript := strings.CutSuffix(e.Name(), ".js")
		if isScript && !slices.Contains(scripts, name) {
			t.Errorf("%s is in no page", e.Name())
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteReportsAnErrorOfTheWriter(t *testing.T) {
	err := Write(full{}, dataOf(t, Build{Kind: KindSize}, ""))
	if err == nil || err.Error() != "report: write page: no space left" {
		t.Errorf("the error is %v", err)
	}
}
