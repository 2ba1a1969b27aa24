package command

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// output is standard output. Its errors differ from others, such as those of the connection
// to a store.
type output struct{ io.Writer }

func (o output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}

// OutputError is an error of writing to standard output.
type outputError struct{ err error }

func (e *outputError) Error() string { return "standard output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// ReaderClosed reports whether err means that the reader of our output, such as head, has
// closed it.
func ReaderClosed(err error) bool {
	e, ok := errors.AsType[*outputError](err)
	return ok && errors.Is(e, syscall.EPIPE)
}

// Printable escapes everything in s that could move a cursor, hide text or break a line, and ##[,
// which is a command to GitHub Actions in the middle of a line, too: keys and file names hold any
// bytes.
func Printable[T ~string](text T) string {
	s := string(text)
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
				continue
			}
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return strings.ReplaceAll(b.String(), "##[", "#\\x23[")
}

// PrintFolded writes text after head, folded between words into lines of at most width. If
// width is 0, it writes one line.
func PrintFolded(w io.Writer, head, text string, width int) {
	line := head
	for i, word := range strings.Split(text, " ") {
		if i > 0 && width > 0 && utf8.RuneCountInString(line+" "+word) > width {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", len(head)) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// Thousands formats n with commas: 1,234,567.
func Thousands(n int64) string { return report.Number(n) }

// Count formats n and its noun: 1 line, 2 lines.
func Count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(n) + " " + noun
}

// Percent formats a fraction, such as 12.3%.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

// Columns returns COLUMNS, or else the width of the terminal w, or 0 if w is no terminal.
func Columns(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if o, ok := w.(output); ok {
		w = o.Writer
	}
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Print prints v as JSON, or by text, for the width of the terminal. It is no error if the reader
// of the output has closed it.
func Print(cmd *cobra.Command, asJSON bool, v any, text func(w io.Writer, width int)) (err error) {
	out := bufio.NewWriter(cmd.OutOrStdout())
	if asJSON {
		err = EncodeJSON(out, v, "  ")
	} else {
		text(out, Columns(cmd.OutOrStdout()))
	}
	if err = cmp.Or(err, out.Flush()); ReaderClosed(err) {
		return nil
	}
	return err
}

// EncodeJSON writes v as JSON, in one line if indent is empty.
func EncodeJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// FileError adds the name of a file to err, at the front.
func FileError(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Short formats d without zeros at its end: 1m, not 1m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
