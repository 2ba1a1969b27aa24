// Package logs has the verbs on access logs. It links neither a server nor a client of Redis, so
// that a program of these verbs alone compiles soon.
package logs

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/internal/await"
)

// stdinName is the name of standard input as a log.
const stdinName = "standard input"

// Flags are the flags of verbs that read access logs.
type Flags struct {
	by      string
	format  string
	fields  string
	reorder time.Duration
	top     int
	report  reportFlag
	json    bool
}

func (f *Flags) flags(cmd *cobra.Command, args []string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.by, "by", "ip",
		"limit by `PARTS`: ip, path, method, host, header:NAME, or several of them joined by "+
			"commas; all: all requests together")
	flags.StringVar(&f.format, "format", "auto",
		"read logs in `FORMAT`: "+replay.FormatNames()+
			", or what log_format of nginx says, such as '$remote_addr [$time_local] \"$request\"'")
	flags.StringVar(&f.fields, "field", "",
		"read fields from `NAMES` of members of JSON or columns: client=NAME,time=NAME; also "+
			"method, path, request, status and host")
	flags.DurationVar(&f.reorder, "reorder", replay.DefaultReorder,
		"reorder lines that are up to `TIME` late")
	flags.IntVar(&f.top, "top", replay.DefaultTop, "list the `N` keys that were denied most")
	f.report.flag(cmd, args)
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
}

// Reading returns how to read the logs.
func (f *Flags) Reading(cmd *cobra.Command) (c replay.Reading, err error) {
	if c.By, err = replay.ParseBy(f.by); err != nil {
		return c, err
	}
	if c.Format, err = replay.ParseFormat(f.format); err != nil {
		return c, err
	}
	if c.Names, err = replay.ParseNames(f.fields); err != nil {
		return c, err
	}
	if f.reorder < 0 {
		return c, command.Usagef(cmd, "--reorder is %v; want 0 or more, such as 90s", f.reorder)
	}
	if f.top < 0 {
		return c, command.Usagef(cmd, "--top is %d; want 0 or more", f.top)
	}
	c.Reorder, c.Top = f.reorder, f.top
	return c, nil
}

// readingFlags returns the flags that read logs as f does, without defaults but that of --by.
func (f *Flags) readingFlags() []string {
	flags := []string{"--by", f.by}
	if f.format != "auto" {
		flags = append(flags, "--format", f.format)
	}
	if f.fields != "" {
		flags = append(flags, "--field", f.fields)
	}
	if f.reorder != replay.DefaultReorder {
		flags = append(flags, "--reorder", command.Short(f.reorder))
	}
	return flags
}

// Open opens files: - and, if a log is piped in, no files mean standard input. size is
// that of all files together, or -1 if it is not known.
func Open(
	cmd *cobra.Command, files []string,
) (logs []replay.Log, size int64, closeAll func(), err error) {
	var opened []io.Closer
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	if len(files) == 0 && isPiped(cmd.InOrStdin()) {
		files = []string{"-"}
	}
	if err := checkNames(cmd, files); err != nil {
		return nil, 0, nil, err
	}
	for _, name := range files {
		log := replay.Log{Name: stdinName, Reader: cmd.InOrStdin()}
		if name != "-" {
			f, err := openFile(cmd.Context(), name)
			if err != nil {
				closeAll()
				return nil, 0, nil, command.FileError(name, err)
			}
			opened, log = append(opened, f), replay.Log{Name: name, Reader: f}
		}
		logs = append(logs, log)
		if size, err = addSize(size, log.Name, log.Reader); err != nil {
			closeAll()
			return nil, 0, nil, err
		}
	}
	return logs, size, closeAll, nil
}

// isPiped reports whether in is a pipe or a file, and not a terminal or the null device.
func isPiped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

func checkNames(cmd *cobra.Command, files []string) error {
	if len(files) == 0 {
		return command.Usagef(cmd, "no log given; add files, or - for standard input")
	}
	stdin := false
	for _, name := range files {
		switch {
		case name == "":
			return command.Usagef(cmd, "a file name is empty; want a file, or - for standard input")
		case name == "-" && stdin:
			return command.Usagef(cmd, "standard input (-) is given twice; give it once")
		}
		stdin = stdin || name == "-"
	}
	return nil
}

// openFile opens a file, until ctx ends: opening a named pipe that has no writer never returns.
func openFile(ctx context.Context, name string) (*os.File, error) {
	var f *os.File
	var err error
	if left := await.Do(ctx, func() { f, err = os.Open(name) }); left {
		return nil, context.Cause(ctx)
	}
	return f, err
}

// addSize adds the size of r to that of the logs before it.
func addSize(size int64, name string, r io.Reader) (int64, error) {
	f, ok := r.(*os.File)
	if !ok {
		return -1, nil
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, command.FileError(name, err)
	case info.IsDir():
		return 0, fmt.Errorf("%s: is a directory; give the log files in it", name)
	case size < 0 || !info.Mode().IsRegular():
		return -1, nil
	}
	return size + info.Size(), nil
}
