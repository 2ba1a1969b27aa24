package logs

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// reportFile is the file of a page. It is written when the page is whole, so that a failure before
// leaves an older one as it was.
type reportFile struct {
	name string
	file *os.File
	made bool // by us, and not written yet
}

// createReport opens the file of --report before the logs are read, so that a name that cannot be
// written fails at once.
func createReport(cmd *cobra.Command, name string, logs []replay.Log) (*reportFile, error) {
	if name == "" || name == "-" {
		return nil, command.Usagef(cmd, "--report is %q; want a file, such as report.html", name)
	}
	for _, log := range logs {
		if !rereadable(cmd, log) {
			return nil, command.Usagef(cmd, "--report reads the logs twice; want files, not %s",
				log.Name)
		}
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, command.Usagef(cmd, "--report %s is not a regular file; want a file, such as "+
			"report.html", name)
	}
	f := &reportFile{name: name, made: err != nil}
	f.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666) //nolint:gosec // umask applies
	if err != nil {
		return nil, reportError(name, err)
	}
	if err := f.checkOld(cmd); err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

func reportError(name string, err error) error {
	return fmt.Errorf("--report: %w", command.FileError(name, err))
}

// rereadable reports whether log is a file that can be read from its beginning again.
func rereadable(cmd *cobra.Command, log replay.Log) bool {
	f, ok := log.Reader.(*os.File)
	if !ok || log.Reader == cmd.InOrStdin() {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// headBytes is how far into a page its title is, at most.
const headBytes = 2048

// checkOld returns an error if the file that a page would replace is not a page: a log that is
// named in the wrong place must not be lost.
func (f *reportFile) checkOld(cmd *cobra.Command) error {
	head, err := io.ReadAll(io.NewSectionReader(f.file, 0, headBytes))
	if err != nil {
		return reportError(f.name, err)
	}
	if len(head) > 0 && !bytes.Contains(head, []byte("<title>Headgate report</title>")) {
		return command.Usagef(cmd, "--report %s exists and is not a report; want another file, "+
			"such as report.html", f.name)
	}
	return nil
}

// write writes the page, and returns its size.
func (f *reportFile) write(d *report.Data) (size int, err error) {
	var page bytes.Buffer
	err = report.Write(&page, d)
	if err == nil {
		err = f.file.Truncate(0)
	}
	if err == nil {
		_, err = f.file.WriteAt(page.Bytes(), 0)
	}
	if err = cmp.Or(err, f.file.Close()); err != nil {
		return 0, reportError(f.name, err)
	}
	f.made = false
	return page.Len(), nil
}

// remove closes the file, and removes it if it was made for a page that was not written.
func (f *reportFile) remove() {
	f.file.Close()
	if f.made {
		os.Remove(f.name)
	}
}
