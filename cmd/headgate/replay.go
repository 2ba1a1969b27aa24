package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/replay"
)

const replayHelp = `Run the requests of access logs against limits that are not live yet, each at the time
it was recorded, and report which keys would have been denied. Several limits are
compared side by side.

Logs may be in the combined or common format, JSON lines or W3C, plain or gzip. The format
of each is detected. - is standard input, as are no files at all if a log is piped in.

Files are merged by time and may be named in any order. The lines of each file must be
in order: rotated logs that were joined, by zcat *.gz for example, are not. If over 1 % of
the lines are out of order, the numbers are wrong, and the exit code is 3.

IPv6 clients are limited by their /64 network.`

const replayExample = `  headgate replay --limit 60/m access.log access.log.1.gz
  headgate replay --limit 60/m --limit "10/s burst 50" --by ip,path access.log
  headgate replay --limit 5/15m --json access.log access.log.*.gz
  kubectl logs deploy/web | headgate replay --limit 60/m`

// replayFlags are the flags of replay as given.
type replayFlags struct {
	limits  []string
	by      string
	format  string
	reorder time.Duration
	top     int
	json    bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay --limit TEXT... [FILE...|-]",
		Short:   "Test limits on access logs",
		Long:    replayHelp,
		Example: replayExample,
		RunE:    f.run,
	}
	limitsFlag(cmd, &f.limits,
		"test the limit `TEXT`, such as \"10/s burst 50\"; repeat it to compare several")
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.by, "by", "ip",
		"limit by `PARTS`: ip, path, method, host, header:NAME,\n"+
			"several of them joined by commas, or all")
	flags.StringVar(&f.format, "format", "auto",
		"read logs in `FORMAT`: auto, combined, common, json or w3c")
	flags.DurationVar(&f.reorder, "reorder", replay.DefaultReorder,
		"reorder lines that are up to `TIME` late")
	flags.IntVar(&f.top, "top", replay.DefaultTop, "list the `N` keys that were denied most")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, files []string) error {
	config, err := f.config(cmd)
	if err != nil {
		return err
	}
	if len(files) == 0 && isPiped(cmd.InOrStdin()) {
		files = []string{"-"}
	}
	if len(files) == 0 {
		return usagef(cmd, "no log given; add files, or - for standard input")
	}
	logs, size, closeAll, err := openLogs(cmd, files)
	if err != nil {
		return err
	}
	defer closeAll()
	report, err := replayWithProgress(cmd.Context(), cmd.ErrOrStderr(), config, logs, size)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	if f.json {
		err = printJSON(out, report)
	} else {
		printReport(out, report, columns(cmd.OutOrStdout()))
	}
	if err := cmp.Or(err, out.Flush()); err != nil && !readerClosed(err) {
		return err
	}
	return lateError(report, f.reorder)
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

func (f *replayFlags) config(cmd *cobra.Command) (c replay.Config, err error) {
	if c.Limits, err = parseLimits(cmd, f.limits); err != nil {
		return c, err
	}
	if c.By, err = replay.ParseBy(f.by); err != nil {
		return c, err
	}
	if c.Format, err = replay.ParseFormat(f.format); err != nil {
		return c, err
	}
	if f.reorder < 0 {
		return c, usagef(cmd, "--reorder is %v; want 0 or more, such as 90s", f.reorder)
	}
	if f.top < 0 {
		return c, usagef(cmd, "--top is %d; want 0 or more", f.top)
	}
	// In a Config, 0 is the default, and a negative number is none.
	c.Reorder, c.Top = f.reorder, f.top
	if c.Reorder == 0 {
		c.Reorder = -1
	}
	if c.Top == 0 {
		c.Top = -1
	}
	return c, nil
}

// openLogs opens files, of which - is standard input. size is that of all files together, or
// -1 if it is not known.
func openLogs(
	cmd *cobra.Command, files []string,
) (logs []replay.Log, size int64, closeAll func(), err error) {
	var opened []io.Closer
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	if err := checkNames(cmd, files); err != nil {
		return nil, 0, nil, err
	}
	for _, name := range files {
		log := replay.Log{Name: "standard input", Reader: cmd.InOrStdin()}
		if name != "-" {
			f, err := openFile(cmd.Context(), name)
			if err != nil {
				closeAll()
				return nil, 0, nil, fileError(name, err)
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

func checkNames(cmd *cobra.Command, files []string) error {
	stdin := false
	for _, name := range files {
		switch {
		case name == "":
			return usagef(cmd, "a file name is empty; want a file, or - for standard input")
		case name == "-" && stdin:
			return usagef(cmd, "standard input (-) is given twice; give it once")
		}
		stdin = stdin || name == "-"
	}
	return nil
}

// openFile opens a file, until ctx ends: opening a named pipe that has no writer never returns.
func openFile(ctx context.Context, name string) (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result, 1)
	go func() {
		f, err := os.Open(name)
		done <- result{f, err}
	}()
	select {
	case r := <-done:
		return r.file, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
		return 0, fileError(name, err)
	case info.IsDir():
		return 0, fmt.Errorf("%s: is a directory; give the log files in it", name)
	case size < 0 || !info.Mode().IsRegular():
		return -1, nil
	}
	return size + info.Size(), nil
}

// fileError adds the name of a file to err, at the front.
func fileError(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// replayWithProgress replays the logs and shows its progress. It returns at once when ctx
// ends, even if a read hangs.
func replayWithProgress(
	ctx context.Context, stderr io.Writer, c replay.Config, logs []replay.Log, size int64,
) (*replay.Report, error) {
	var read atomic.Int64
	c.Progress = read.Store
	type result struct {
		report *replay.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		report, err := replay.Run(ctx, c, logs...)
		done <- result{report, err}
	}()
	bar := newProgress(stderr, size)
	defer bar.clear()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case r := <-done:
			return r.report, r.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticks.C:
			bar.show(read.Load())
		}
	}
}
