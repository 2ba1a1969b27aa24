package command

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the width of help, unless the terminal has fewer columns.
const helpWidth = 80

// foldHelp makes the help of root and its verbs fit its width.
func foldHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		w, width := cmd.OutOrStdout(), helpWidth
		if n := Columns(w); n > 0 {
			width = min(n, helpWidth)
		}
		text := cmp.Or(cmd.Long, cmd.Short)
		if cmd.Runnable() {
			text += "\n\n" + strings.TrimSpace(cmd.UsageString())
		}
		for i, paragraph := range strings.Split(text, "\n\n") {
			if i > 0 {
				fmt.Fprintln(w)
			}
			printHelp(w, paragraph, width)
		}
	})
}

// firstColumn is the indent of a line, and the first column if the line is a row of a table.
var firstColumn = regexp.MustCompile(`^ +(\S.*?  +)?`)

// printHelp writes a paragraph, folded into lines of at most width. Only lines without an indent
// are joined.
func printHelp(w io.Writer, paragraph string, width int) {
	prose := ""
	for line := range strings.SplitSeq(paragraph, "\n") {
		head := firstColumn.FindString(line)
		if head == "" {
			prose = strings.TrimSpace(prose + " " + line)
			continue
		}
		if prose != "" {
			PrintFolded(w, "", prose, width)
		}
		PrintFolded(w, head, line[len(head):], width)
		prose = ""
	}
	if prose != "" {
		PrintFolded(w, "", prose, width)
	}
}
