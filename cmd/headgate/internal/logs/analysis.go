package logs

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// analyse reads logs, prints what b finds in them, and with --report writes the page.
func (f *Flags) analyse(cmd *cobra.Command, files []string, b *report.Build) error {
	logs, size, closeAll, err := Open(cmd, files)
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
		bar := NewProgress(cmd.ErrOrStderr(), b.Kind, size)
		d, err = WithProgress(cmd.Context(), bar, func() (*report.Data, error) {
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
	return cmp.Or(err, f.Trust(traffic))
}

// readOnce finds what is printed, which needs one reading of the logs.
func readOnce(
	ctx context.Context, b *report.Build, bar *Progress, logs []replay.Log,
) (d *report.Data, err error) {
	d = &report.Data{Kind: b.Kind}
	c := b.Size
	c.Progress = bar.Read
	if b.Kind == report.KindSize {
		c.Searching = func() { bar.then.Store("size: search") }
		d.Size, err = replay.Size(ctx, c, logs...)
		return d, err
	}
	d.Replay, err = replay.Run(ctx, replay.Config{Reading: c.Reading, Limits: b.Limits}, logs...)
	return d, err
}

// print prints what was found, as text or JSON.
func (f *Flags) print(cmd *cobra.Command, d *report.Data) (*replay.Traffic, error) {
	if d.Kind == report.KindSize {
		return &d.Size.Traffic, f.Print(cmd, d.Size, func(w io.Writer, width int) {
			printSize(w, d.Size, f.readingFlags(), width)
		})
	}
	plain := *d.Replay
	plain.Detail = nil // which is on the page
	return &plain.Traffic, f.Print(cmd, &plain, func(w io.Writer, width int) {
		printReport(w, d.Replay, width)
	})
}

// Print prints what was found as JSON, or by text.
func (f *Flags) Print(cmd *cobra.Command, found any, text func(w io.Writer, width int)) error {
	return command.Print(cmd, f.json, found, text)
}

// Trust returns an error if the numbers mean nothing.
func (f *Flags) Trust(r *replay.Traffic) error {
	return cmp.Or(lateError(r, f.reorder), r.Unreadable())
}
