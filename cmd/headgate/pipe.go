package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

func newPipe() *cobra.Command {
	var t target
	var byBytes bool
	cmd := &cobra.Command{
		Use:   "pipe --limit TEXT [--key K] [--store URL] [--bytes]",
		Short: "Pass standard input on, at most so many lines or bytes in a time",
		Long: `Pass standard input on to standard output, in order, at most so many lines in a
time: each when its turn comes. Pipes that ask the same store for the same key keep
the limit together. Of several limits, all are kept.`,
		Example: `  seq 1 20 | headgate pipe --limit 5/s
  headgate pipe --limit "1000000/s burst 65536" --bytes <backup.tar >/mnt/backup.tar
  tail -f jobs | headgate pipe --limit 100/m --key jobs --store redis://localhost:6379`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPipe(cmd.Context(), cmd, &t, byBytes) },
	}
	t.flags(cmd)
	cmd.Flags().BoolVar(&byBytes, "bytes", false, "count bytes instead of lines")
	return cmd
}

func runPipe(ctx context.Context, cmd *cobra.Command, t *target, byBytes bool) error {
	l, limits, s, err := t.limiter(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	p := pipe{
		in:  newInterruptible(ctx, cmd.InOrStdin()),
		out: cmd.OutOrStdout(),
		wait: func(n int64) error {
			if err := l.WaitN(ctx, t.key, n); err != nil {
				return s.failed(err)
			}
			return nil
		},
	}
	if byBytes {
		return p.passBytes(make([]byte, chunk(limits)))
	}
	return p.passLines()
}

// pipe passes in on to out, each part after waiting for as many tokens as it costs.
type pipe struct {
	in   io.Reader
	out  io.Writer
	wait func(n int64) error
}

// longestPart is how much of a line, or of bytes, is held at most.
const longestPart = 1 << 16

// passLines passes lines, of which the last one may have no end. A line is
// passed once it has been read whole, or in parts if it is long; it costs one token.
func (p *pipe) passLines() error {
	in := bufio.NewReaderSize(p.in, longestPart)
	for begun := false; ; {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, context.Canceled) || len(part) > 0 && !begun {
			if err := p.turn(1, err); err != nil {
				ahead, _ := in.Peek(in.Buffered())
				return unpassed(err, lines(part)+lines(ahead), "line")
			}
		}
		if err := p.pass(part); err != nil {
			return err
		}
		begun = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !begun {
			return inputError(err)
		}
	}
}

// turn waits for n tokens, unless reading was interrupted.
func (p *pipe) turn(n int64, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return p.wait(n)
}

// passBytes passes bytes in parts as long as room, each of which costs as many tokens.
func (p *pipe) passBytes(room []byte) error {
	for {
		n, err := p.in.Read(room)
		if errors.Is(err, context.Canceled) || n > 0 {
			if err := p.turn(int64(n), err); err != nil {
				return unpassed(err, int64(n), "byte")
			}
		}
		if err := p.pass(room[:n]); err != nil {
			return err
		}
		if err != nil {
			return inputError(err)
		}
	}
}

// pass writes b at once.
func (p *pipe) pass(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := p.out.Write(b)
	return err
}

// inputError is an error of reading standard input, none at its end.
func inputError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fileError("standard input", err)
}

// unpassed tells, if err is an interruption, how much was read in vain.
func unpassed(err error, n int64, noun string) error {
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case n == 0:
		return &interruption{err, "all that was read has been passed"}
	default:
		return &interruption{err, count(n, noun) + " had been read and not passed"}
	}
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
func chunk(limits []headgate.Limit) int64 {
	n := int64(longestPart)
	for _, l := range limits {
		tokens := l.Capacity()
		if l.Refill() > 0 {
			tokens = l.Refill()
		}
		tenth := float64(tokens) * float64(100*time.Millisecond) / float64(l.Period())
		n = min(n, l.Capacity(), max(int64(min(tenth, longestPart)), 1))
	}
	return n
}
