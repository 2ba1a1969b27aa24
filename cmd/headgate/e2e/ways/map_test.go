package ways

import (
	"maps"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// blocks are the parts of section 2 of ARCHITECTURE.md that begin with a bold title, by that title
// in lower case. A block has paragraphs and a table.
type blocks map[string]string

var (
	title     = regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`)
	reference = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	fileName  = regexp.MustCompile("`([a-z0-9_/{},]+\\.(?:go|lua))`")
	cells     = regexp.MustCompile(`\||\n\n`)
)

func readMap(t *testing.T) blocks {
	t.Helper()
	text, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## 2.")
	section, _, _ = strings.Cut(section, "\n## 3.")
	found := make(blocks)
	at := title.FindAllStringSubmatchIndex(section, -1)
	for i, m := range at {
		end := len(section)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		found[strings.ToLower(section[m[2]:m[3]])] = section[m[1]:end]
	}
	return found
}

// files returns the Go files that a block names, and those of the blocks whose titles it names.
func (b blocks) files(t *testing.T, name string) map[string]bool {
	t.Helper()
	text, ok := b[strings.ToLower(name)]
	if !ok {
		t.Fatalf("ARCHITECTURE.md, section 2, has no **%s**", name)
	}
	files := make(map[string]bool)
	for _, cell := range cells.Split(text, -1) {
		dir := ""
		for _, m := range fileName.FindAllStringSubmatch(cell, -1) {
			for _, file := range expand(m[1]) {
				if !strings.Contains(file, "/") {
					file = path.Join(dir, file)
				}
				file, ok := find(file)
				if !ok {
					t.Errorf("ARCHITECTURE.md names a file that does not exist: %s", file)
				} else if strings.HasSuffix(file, ".go") {
					files[file] = true
				}
				dir = path.Dir(file)
			}
		}
	}
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		maps.Copy(files, b.files(t, m[1]))
	}
	return files
}

// expand returns the names that dir/{a,b}.go stands for.
func expand(name string) []string {
	before, rest, ok := strings.Cut(name, "{")
	if !ok {
		return []string{name}
	}
	inside, after, _ := strings.Cut(rest, "}")
	names := strings.Split(inside, ",")
	for i := range names {
		names[i] = before + names[i] + after
	}
	return names
}

// find returns the path of a file in the repository. Its name may be that in the packages of the
// program.
func find(name string) (file string, ok bool) {
	for _, dir := range []string{"cmd/headgate/internal", ""} {
		file = path.Join(dir, name)
		if _, err := os.Stat(path.Join(root, file)); err == nil {
			return file, true
		}
	}
	return name, false
}
