package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/headgate/headgate/internal/charts"
)

//go:embed page
var page embed.FS

// scripts are the files of the page, in the order in which they must run.
var scripts = []string{
	"text", "model", "copy", "head", "time", "needs", "groups", "keys", "main",
}

// Write writes d as one HTML file that needs no other file and no other host. All text of d is
// text in the page, whatever it holds. It shortens d until the page is below 1 MB.
func Write(w io.Writer, d *Data) error {
	parts, err := d.fit()
	if err != nil {
		return err
	}
	data, err := json.Marshal(d) // escapes <, > and &, and so cannot end the element that holds it
	if err != nil {
		return fmt.Errorf("report: encode data: %w", err)
	}
	return write(w, append(parts, "{{data}}", string(data))...)
}

// parts returns what needs no script, as names and texts.
func (d *Data) parts() (parts []string, err error) {
	for _, name := range []string{"head", "notes"} {
		var part strings.Builder
		if err := static.ExecuteTemplate(&part, name, view{d, d.answer()}); err != nil {
			return nil, fmt.Errorf("report: write page: %w", err)
		}
		parts = append(parts, "{{"+name+"}}", part.String())
	}
	return parts, nil
}

// write writes the page with parts, which are names and texts.
func write(w io.Writer, parts ...string) error {
	style, script := charts.CSS()+"\n"+file("report.css"), scriptOfPage()
	html := strings.NewReplacer(append(parts,
		"{{policy}}", policy(style, script),
		"{{style}}", style,
		"{{script}}", script,
	)...)
	if _, err := html.WriteString(w, file("page.html")); err != nil {
		return fmt.Errorf("report: write page: %w", err)
	}
	return nil
}

func scriptOfPage() string {
	var b strings.Builder
	b.WriteString(charts.JS())
	for _, name := range scripts {
		b.WriteString("\n" + file(name+".js"))
	}
	return b.String()
}

// policy returns a content security policy that allows these two texts and nothing else.
func policy(style, script string) string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
}

func file(name string) string {
	text, err := page.ReadFile("page/" + name)
	if err != nil {
		panic(err) // embedded: the tests read all of them
	}
	return string(text)
}
