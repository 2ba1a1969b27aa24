package cli

import (
	"bufio"
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// analyse reads logs, prints what b finds in them, and with --report writes the page.
func (f *logFlags) analyse(cmd *cobra.Command, files []string, b *report.Build) error {
	logs, size, closeAll, err := openLogs(cmd, files)
	if err != nil {
		return err
	}
	defer closeAll()
	var page *reporting // nil without --report
	var d *report.Data
	if f.report.wanted(cmd) {
		if page, err = f.report.begin(cmd, b.Kind, logs, size); err != nil {
			return err
		}
		defer page.file.remove()
		d, err = f.report.build(cmd.Context(), page, b)
	} else {
		bar := newProgress(cmd.ErrOrStderr(), b.Kind, size)
		d, err = withProgress(cmd.Context(), bar, func() (*report.Data, error) {
			return readOnce(cmd.Context(), b, bar, logs)
		})
	}
	if err != nil {
		return err
	}
	traffic, err := f.print(cmd, d)
	if err == nil && page != nil {
		err = f.finish(cmd, page, d)
	}
	return cmp.Or(err, lateError(traffic, f.reorder), traffic.Unreadable())
}

// readOnce finds what is printed, which needs one reading of the logs.
func readOnce(
	ctx context.Context, b *report.Build, bar *progress, logs []replay.Log,
) (d *report.Data, err error) {
	d = &report.Data{Kind: b.Kind}
	c := b.Size
	c.Progress = bar.read.Store
	if b.Kind == report.KindSize {
		c.Searching = func() { bar.then.Store("size: search") }
		d.Size, err = replay.Size(ctx, c, logs...)
		return d, err
	}
	d.Replay, err = replay.Run(ctx, replay.Config{Reading: c.Reading, Limits: b.Limits}, logs...)
	return d, err
}

// print prints what was found, as text or JSON.
func (f *logFlags) print(cmd *cobra.Command, d *report.Data) (*replay.Traffic, error) {
	out, width := bufio.NewWriter(cmd.OutOrStdout()), columns(cmd.OutOrStdout())
	var traffic *replay.Traffic
	var found any
	if d.Kind == report.KindSize {
		traffic, found = &d.Size.Traffic, d.Size
	} else {
		plain := *d.Replay
		plain.Detail = nil // which is on the page
		traffic, found = &plain.Traffic, &plain
	}
	var err error
	switch {
	case f.json:
		err = printJSON(out, found)
	case d.Kind == report.KindSize:
		printSize(out, d.Size, f.readingFlags(), width)
	default:
		printReport(out, d.Replay, width)
	}
	if err := cmp.Or(err, out.Flush()); err != nil && !readerClosed(err) {
		return traffic, err
	}
	return traffic, nil
}
