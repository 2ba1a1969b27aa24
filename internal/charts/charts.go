// Package charts holds what Headgate's pages share: elements, formats, colours and charts.
//
// js/dom.js and js/format.js are modules, which pages import. JS has them, uPlot and the charts as
// a plain script with one global: Charts.dom, Charts.format, Charts.time and Charts.histogram, each
// documented in its file of js. The scripts have no inline handlers and
// evaluate nothing, so that a page may forbid both, and call no other host.
package charts

import (
	"embed"
	"regexp"
	"strings"
)

//go:embed uplot/uPlot.iife.min.js uplot/uPlot.min.css uplot/LICENSE *.css js/*.js
var files embed.FS

// scripts are the files of the layer, in the order in which they must run.
var scripts = []string{
	"theme", "dom", "format", "axis", "plot", "time", "marks", "histogram",
}

// JS returns the script of uPlot and of the charts, with the licence of uPlot as a comment.
func JS() string {
	var b strings.Builder
	b.WriteString("/*!\nuPlot:\n\n" + read("uplot/LICENSE") + "\n*/\n")
	b.WriteString(read("uplot/uPlot.iife.min.js"))
	for _, name := range scripts {
		b.WriteString("\n" + plain(name))
	}
	return b.String()
}

var exported = regexp.MustCompile(`(?m)^export (?:const|function) (\w+)`)

// plain returns a script of the layer. What a module exports is in Charts, by the module's name.
func plain(name string) string {
	text := read("js/" + name + ".js")
	var names []string
	for _, found := range exported.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	if names == nil {
		return text
	}
	return "Charts." + name + " = (() => {\n" + strings.ReplaceAll(text, "\nexport ", "\n") +
		"return { " + strings.Join(names, ", ") + " };\n})();\n"
}

// CSS returns the style sheet of uPlot and of the charts, with the theme of all pages.
func CSS() string {
	return read("uplot/uPlot.min.css") + "\n" + read("theme.css") + "\n" + read("charts.css")
}

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded: charts_test.go reads all of them
	}
	return string(text)
}
