package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/gate"
)

func newPipe() *cobra.Command {
	var t target
	var byBytes bool
	cmd := &cobra.Command{
		Use:   "pipe --limit TEXT [--burst N] [--key K] [--store URL] [--bytes]",
		Short: "Copy stdin to stdout at a limited rate",
		Long: `Copy standard input to standard output, in order, at a limited rate of lines
or bytes. With several limits, all of them apply.

  5/s              never more than 5 in any second
  5/s burst 1      one every 200 ms
  5/s burst 5      5 at once, then one every 200 ms: 9 in the first second

With --burst 5, 5/s means 5/s burst 5. Pipes that use the same store, key and limit
share the limit; between pipes, no order is promised.

With memory:, the limits hold for the times at which lines are written, even if the
machine or the reader is slow. With another store, each line has a start time by the
store's clock, and the limits hold for these times. A line that is written late may come
closer to the next one.`,
		Example: `  seq 1 20 | headgate pipe --limit 5/s
  headgate pipe --limit 1000000/s --bytes <backup.tar >/mnt/backup.tar
  tail -f jobs | headgate pipe -l 100/m --key jobs --store redis://localhost`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPipe(cmd.Context(), cmd, &t, byBytes)
		},
	}
	t.flags(cmd)
	t.paceFlags(cmd)
	cmd.Flags().BoolVar(&byBytes, "bytes", false, "limit bytes instead of lines")
	return cmd
}

func runPipe(ctx context.Context, cmd *cobra.Command, t *target, byBytes bool) error {
	t.smooth = byBytes
	l, _, s, err := t.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	waiter := gate.NewKeyWaiter(l, t.key)
	p := pipe{
		in:    newInterruptible(ctx, cmd.InOrStdin()),
		wait:  func(n int64) error { return storeError(ctx, s, waiter.WaitN(ctx, n)) },
		write: func(b []byte) error { return command.WriteUntil(ctx, cmd.OutOrStdout(), b) },
		used:  func(int64) {},
	}
	if s.Memory() {
		p.used = func(n int64) { chargeNow(ctx, l, t.key, n) }
	}
	if byBytes {
		return p.passBytes(make([]byte, chunk(waiter)))
	}
	return p.passLines()
}

// chargeNow charges n tokens from now instead of from their start time. So the limits of a pipe
// alone hold for when a part was written, even if that was late or took long.
func chargeNow(ctx context.Context, l *headgate.Limiter, key string, n int64) {
	_, _ = l.Refund(ctx, key, n) // memory never fails
	_, _ = l.Charge(ctx, key, n)
}

// pipe passes what it reads on, each part after waiting for as many tokens as it costs.
type pipe struct {
	in    io.Reader
	wait  func(n int64) error
	write func(b []byte) error
	used  func(n int64) // the part that has waited for n tokens is written
}

// longestPart is how much of a line, or of bytes, is held at most.
const longestPart = 1 << 16

// passLines passes lines, of which the last one may have no end. A line is
// passed once it has been read whole, or in parts if it is long; it costs one token.
func (p *pipe) passLines() error {
	in := bufio.NewReaderSize(p.in, longestPart)
	for begun := false; ; {
		part, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err := p.pass(part, err, !begun, !long); err != nil {
			ahead, _ := in.Peek(in.Buffered())
			return unpassed(err, command.Count(lines(part)+lines(ahead), "line"))
		}
		begun = long
		if err != nil && !begun {
			return inputError(err)
		}
	}
}

// pass passes a part of a line, unless reading it was interrupted. The first part waits.
func (p *pipe) pass(part []byte, err error, first, last bool) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if first && len(part) == 0 {
		return nil
	}
	if first {
		if err := p.wait(1); err != nil {
			return err
		}
	}
	if err := p.write(part); err != nil {
		return err
	}
	if last {
		p.used(1)
	}
	return nil
}

// passBytes passes bytes in parts as long as room, each of which costs as many tokens.
func (p *pipe) passBytes(room []byte) error {
	for {
		n, err := p.in.Read(room)
		if errors.Is(err, context.Canceled) {
			return unpassed(err, command.Count(int64(n), "byte"))
		}
		if n > 0 {
			if err := p.wait(int64(n)); err != nil {
				return unpassed(err, command.Count(int64(n), "byte"))
			}
			if err := p.write(room[:n]); err != nil {
				return unpassed(err, "at most "+command.Count(int64(n), "byte"))
			}
			p.used(int64(n))
		}
		if err != nil {
			return inputError(err)
		}
	}
}

// inputError is an error of reading standard input, none at its end.
func inputError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return command.FileError("standard input", err)
}

// unpassed adds to err, an interruption or a failure, how much was read and not passed.
func unpassed(err error, what string) error {
	undone := what + " had been read, but not written"
	if strings.HasPrefix(what, "0 ") {
		undone = "all that was read has been passed"
	}
	if errors.Is(err, context.Canceled) {
		return &command.InterruptedError{Err: err, Undone: undone}
	}
	return fmt.Errorf("%w; %s", err, undone)
}

// lines counts the lines in b, of which the last may have no end.
func lines(b []byte) int64 {
	n := int64(bytes.Count(b, []byte{'\n'}))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// chunk is how many bytes are passed at a time: a tenth of a second's worth, so that they
// flow evenly, and no more than every limit grants at once.
func chunk(w gate.Waiter) int64 {
	tokens, period := w.Rate()
	tenth := float64(tokens) * float64(100*time.Millisecond) / float64(period)
	return min(longestPart, w.Burst(), max(int64(min(tenth, longestPart)), 1))
}
