package logs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// reportFlag is --report, which writes the result as a page with charts.
type reportFlag struct {
	name string
	args []string // the command line
}

func (f *reportFlag) flag(cmd *cobra.Command, args []string) {
	f.args = args
	cmd.Flags().StringVar(&f.name, "report", "",
		"also write the report to `FILE`, as an HTML page with charts; this reads the logs twice")
}

func (*reportFlag) wanted(cmd *cobra.Command) bool { return cmd.Flags().Changed("report") }

// reporting is a page that is being made. It reads the logs twice, up to the length that they had
// at first, because a log may grow.
type reporting struct {
	file    *reportFile
	verb    string
	logs    []replay.Log // of open files
	lengths []int64
	size    int64 // of all logs
	bar     *Progress
}

// begin creates the file of the page.
func (f *reportFlag) begin(
	cmd *cobra.Command, verb string, logs []replay.Log, size int64,
) (*reporting, error) {
	file, err := createReport(cmd, f.name, logs)
	if err != nil {
		return nil, err
	}
	r := &reporting{
		file: file, verb: verb, logs: logs, size: size,
		bar: NewProgress(cmd.ErrOrStderr(), verb+": 1 of 2", 2*size),
	}
	for _, log := range logs {
		info, err := logFile(log).Stat()
		if err != nil {
			file.remove()
			return nil, command.FileError(log.Name, err)
		}
		r.lengths = append(r.lengths, info.Size())
	}
	return r, nil
}

// logFile returns the file of a log. createReport has checked that there is one.
func logFile(log replay.Log) *os.File {
	return log.Reader.(*os.File) //nolint:forcetypeassert // as above
}

// build reads the logs, and returns what the page shows.
func (f *reportFlag) build(
	ctx context.Context, r *reporting, b *report.Build,
) (*report.Data, error) {
	b.Kind, b.Command, b.Made = r.verb, commandLine(f.args), time.Now().UTC().Truncate(time.Second)
	b.Size.Searching = func() { r.bar.then.Store(r.verb + ": search") }
	before := int64(0)
	b.Logs = func(reading int) ([]replay.Log, error) {
		before = r.size * int64(reading-1)
		return r.read(reading)
	}
	b.Size.Progress = func(bytes int64) { r.bar.read.Store(before + bytes) }
	return WithProgress(ctx, r.bar, func() (*report.Data, error) { return b.Run(ctx) })
}

// read returns the logs from their beginning.
func (r *reporting) read(reading int) ([]replay.Log, error) {
	r.bar.then.Store(fmt.Sprintf("%s: %d of 2", r.verb, reading))
	logs := make([]replay.Log, len(r.logs))
	for i, log := range r.logs {
		if _, err := logFile(log).Seek(0, io.SeekStart); err != nil {
			return nil, command.FileError(log.Name, err)
		}
		logs[i] = replay.Log{Name: log.Name, Reader: io.LimitReader(logFile(log), r.lengths[i])}
	}
	return logs, nil
}

// finish writes the page, and prints a line about it.
func (f *Flags) finish(cmd *cobra.Command, r *reporting, d *report.Data) error {
	size, err := r.file.write(d)
	if err != nil {
		return err
	}
	if !f.json {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nreport    %s (%s KB)\n",
			command.Printable(r.file.name), command.Thousands(int64(size+999)/1000))
	}
	if command.ReaderClosed(err) {
		return nil
	}
	return err
}

// commandLine returns args as a shell reads them.
func commandLine(args []string) string {
	words := []string{"headgate"}
	for _, arg := range args {
		plain := strings.IndexFunc(arg, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
				!strings.ContainsRune("%+,-./:=@_", r)
		}) < 0
		if arg == "" || !plain {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
