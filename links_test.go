package headgate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	symbols = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	named   = regexp.MustCompile(`docs/[\w/-]+\.md#[\w-]+`)

	makeTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]*)")
)

// anchors are the anchors that GitHub makes of the headings of a page.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		title := symbols.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(h[1], "$1")), "")
		found[strings.ReplaceAll(title, " ", "-")] = true
	}
	return found
}

// readPages returns the text of each Markdown file of the repository, by its path.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	if err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		foreign := []string{".git", "node_modules", "site-packages"}
		if err == nil && e.IsDir() && slices.Contains(foreign, e.Name()) {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a page of this repository
		pages[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if least := 40; len(pages) < least {
		t.Errorf("%d pages, want at least %d", len(pages), least)
	}
	return pages
}

// TestLinks follows the links between the files of the repository, with their anchors.
func TestLinks(t *testing.T) {
	pages := readPages(t)
	for page, text := range pages {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(l[1], "://") || strings.HasPrefix(l[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, l[1])
			}
			if anchor != "" && !anchors(pages[target])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, l[1])
			}
		}
	}
}

// The targets of make that pages name exist.
func TestTargetsNamedByPages(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range readPages(t) {
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: make has no %s", page, m[1])
			}
		}
	}
}

// The console names a section of docs that exists.
func TestSectionNamedByTheConsole(t *testing.T) {
	console, err := os.ReadFile("cmd/headgate/internal/console/page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	page, anchor, _ := strings.Cut(named.FindString(string(console)), "#")
	text, err := os.ReadFile(page) //nolint:gosec // a page of this repository
	if err != nil || !anchors(string(text))[anchor] {
		t.Errorf("the console names %s#%s: %v", page, anchor, err)
	}
}

// The index of docs links to each page for users, ARCHITECTURE.md to each page of the design, and
// the README to the index.
func TestIndexOfDocs(t *testing.T) {
	pages := readPages(t)
	for path := range pages {
		page, of := strings.CutPrefix(path, "docs/")
		index, link := "docs/README.md", "("+page+")"
		if strings.HasPrefix(page, "design/") {
			index, link = "ARCHITECTURE.md", "("+path
		}
		if of && path != index && !strings.Contains(pages[index], link) {
			t.Errorf("%s does not link to %s", index, path)
		}
	}
	if !strings.Contains(pages["README.md"], "(docs/README.md)") {
		t.Error("README.md does not link to docs/README.md")
	}
}
