package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// reportFile is the file of a page while it is written. It has a temporary name until it is whole,
// so that nobody opens half a page, and a failure leaves an older one as it was.
type reportFile struct {
	name string // as given
	path string // to rename to
	tmp  *os.File
}

// createReport makes the file of --report before the logs are read, so that a name that cannot be
// written fails at once.
func createReport(cmd *cobra.Command, name string, logs []replay.Log) (*reportFile, error) {
	if name == "" || name == "-" {
		return nil, usagef(cmd, "--report is %q; want a file, such as report.html", name)
	}
	for _, log := range logs {
		if !rereadable(cmd, log) {
			return nil, usagef(cmd, "--report reads the logs twice; want files, not %s", log.Name)
		}
	}
	f := &reportFile{name: name, path: name}
	mode := os.FileMode(0o666)
	info, err := os.Stat(name)
	if err == nil {
		if err := checkOld(cmd, name, info); err != nil {
			return nil, err
		}
		mode = info.Mode().Perm()
		if f.path, err = filepath.EvalSymlinks(name); err != nil { // or else the link is replaced
			return nil, reportError(name, err)
		}
	} else if _, err := os.Lstat(name); err == nil {
		return nil, usagef(cmd, "--report %s is a link to a file that does not exist; "+
			"want a file, such as report.html", name)
	}
	tmp := fmt.Sprintf("%s.%08x.tmp", f.path, rand.Uint32())
	if f.tmp, err = os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
		return nil, reportError(name, err)
	}
	return f, nil
}

func reportError(name string, err error) error {
	return fmt.Errorf("--report: %w", fileError(name, err))
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
func checkOld(cmd *cobra.Command, name string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return usagef(cmd, "--report %s is not a regular file; want a file, such as report.html",
			name)
	}
	old, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return reportError(name, err)
	}
	defer old.Close()
	head, err := io.ReadAll(io.LimitReader(old, headBytes))
	if err != nil {
		return reportError(name, err)
	}
	if len(head) > 0 && !bytes.Contains(head, []byte("<title>Headgate report</title>")) {
		return usagef(cmd,
			"--report %s exists and is not a report; want another file, such as report.html", name)
	}
	return nil
}

// write writes the page, gives the file its name, and returns its size.
func (f *reportFile) write(d *report.Data) (size int64, err error) {
	w := bufio.NewWriter(f.tmp)
	if err = report.Write(w, d); err == nil {
		err = w.Flush()
	}
	if err != nil {
		return 0, reportError(f.name, err)
	}
	info, err := f.tmp.Stat()
	if err != nil {
		return 0, reportError(f.name, err)
	}
	if err := f.tmp.Close(); err != nil {
		return 0, reportError(f.name, err)
	}
	if err := os.Rename(f.tmp.Name(), f.path); err != nil {
		return 0, reportError(f.name, err)
	}
	return info.Size(), nil
}

// remove removes what was not finished.
func (f *reportFile) remove() {
	f.tmp.Close()
	os.Remove(f.tmp.Name()) // which is gone after write
}
