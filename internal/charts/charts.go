// Package charts holds the charts of Headgate's pages: uPlot and a layer over it.
//
// The scripts are plain ones that share the global Charts: Charts.time, Charts.curves
// and Charts.histogram, each documented in its file of js. They have no inline handlers and
// evaluate nothing, so that a page may forbid both, and call no other host.
package charts

import (
	"embed"
	"strings"
)

//go:embed uplot/uPlot.iife.min.js uplot/uPlot.min.css uplot/LICENSE *.css js/*.js
var files embed.FS

// scripts are the files of the layer, in the order in which they must run.
var scripts = []string{
	"theme", "format", "plot", "time", "marks", "curves", "histogram",
}

// JS returns the script of uPlot and of the charts, with the licence of uPlot as a comment.
func JS() string {
	var b strings.Builder
	b.WriteString("/*!\nuPlot:\n\n" + read("uplot/LICENSE") + "\n*/\n")
	b.WriteString(read("uplot/uPlot.iife.min.js"))
	for _, name := range scripts {
		b.WriteString("\n" + read("js/"+name+".js"))
	}
	return b.String()
}

// CSS returns the style sheet of uPlot and of the charts, with that of Theme.
func CSS() string {
	return read("uplot/uPlot.min.css") + "\n" + Theme() + "\n" + read("charts.css")
}

// Theme returns the style sheet that all pages share, those without charts too.
func Theme() string { return read("theme.css") }

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded: charts_test.go reads all of them
	}
	return string(text)
}
