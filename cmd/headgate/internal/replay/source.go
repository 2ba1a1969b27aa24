package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Reasons for skipping lines that are correct.
const (
	whyBlank   = "blank"
	whyTooLong = "longer than 1 MiB"
)

// source turns one log into records in the order of time.
type source struct {
	name   string
	index  int
	lines  *lines
	wanted wanted
	tried  [JSON + 1]parser // while the format is not known
	parser parser           // nil until it is
	format Format
	entry  entry
	keyer  keyer
	names  *keyIDs
	facets *facets // nil unless they are counted
	saw    *witness
	agent  int // index of the user agent in entry.headers, if there is a witness
	order  reorder
	ended  bool
	skips  map[string]*Skip
	hint   string // why the first line in a guessed format of its own failed
	binary bool   // a line was not text: any format found is chance
}

func newSource(log Log, c Reading, to sink, p *progress) *source {
	s := &source{
		name:   log.Name,
		lines:  newLines(newStored(counted{log.Reader, p})),
		wanted: c.By.wanted(),
		format: c.Format,
		keyer:  keyer{by: c.By},
		names:  to.names,
		facets: to.facets,
		saw:    to.saw,
		order:  reorder{window: c.Reorder.Microseconds(), max: maxHeld},
		skips:  map[string]*Skip{},
	}
	if s.facets != nil {
		s.wanted.request, s.wanted.status = true, true
	}
	if s.saw != nil {
		s.agent = len(s.wanted.headers)
		if i := slices.Index(s.wanted.headers, "useragent"); i >= 0 {
			s.agent = i
		} else {
			s.wanted.headers = append(s.wanted.headers, "useragent")
		}
	}
	s.entry.headers = make([][]byte, len(s.wanted.headers))
	return s
}

// next returns the next record in the order of time. ok is false after the last.
func (s *source) next() (r record, ok bool, err error) {
	for !s.ended && !s.order.ready() {
		if err := s.read(); err != nil {
			return record{}, false, failed(s.name, err)
		}
	}
	if s.order.len() == 0 {
		return record{}, false, nil
	}
	return s.order.pop(), true, nil
}

// read reads one line of the log.
func (s *source) read() error {
	line, err := s.lines.next()
	if err != nil {
		return s.noLine(err)
	}
	if isBlank(line) {
		s.skip(whyBlank)
		return nil
	}
	s.entry.clear()
	if why := s.parse(line); why != "" {
		s.skip(why)
		return nil
	}
	key, why := s.keyer.make(&s.entry)
	if why != "" {
		s.skip(why)
		return nil
	}
	r := record{at: s.entry.at, line: s.lines.number, key: s.names.id(key)}
	if s.saw != nil {
		s.saw.see(key, &s.entry, s.entry.headers[s.agent])
	}
	if s.facets != nil {
		r.facets = s.facets.of(&s.entry)
	}
	s.order.push(r)
	return nil
}

// noLine handles an error of reading a line.
func (s *source) noLine(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		s.ended = true
		return s.checkFormat()
	case errors.Is(err, errTooLong):
		s.skip(whyTooLong)
		return nil
	}
	return err
}

func isBlank(line []byte) bool {
	return len(line) == 0 || line[0] <= ' ' && len(bytes.TrimSpace(line)) == 0
}

// parse reads line in the format of the log, and detects the format first.
func (s *source) parse(line []byte) (why string) {
	if s.parser != nil {
		return s.parser.parse(line, &s.entry)
	}
	f := s.format
	if f == Guess {
		f = guess(line)
	}
	p := s.tried[f]
	if p == nil {
		p = newParser(f, s.wanted)
		s.tried[f] = p
	}
	why = p.parse(line, &s.entry)
	s.binary = s.binary || bytes.IndexByte(line, 0) >= 0
	if p.known() {
		s.parser, s.format = p, f
	} else if f != Combined && s.hint == "" {
		s.hint = fmt.Sprintf("; line %d: %s", s.lines.number, why)
	}
	return why
}

// checkFormat returns an error for a log without a line in a known format.
func (s *source) checkFormat() error {
	unread, hint := s.lines.number, s.hint
	if s.binary {
		hint = ""
	}
	if blank := s.skips[whyBlank]; blank != nil {
		unread -= blank.Lines
	}
	switch {
	case s.parser != nil || unread == 0:
		return nil
	case s.format != Guess:
		return fmt.Errorf("no line is in the %s format%s", s.format, hint)
	}
	return fmt.Errorf("no line is in a known log format (combined, common, JSON lines)%s", hint)
}

func (s *source) skip(why string) {
	k := s.skips[why]
	if k == nil {
		k = &Skip{Reason: why, File: s.name, FirstLine: s.lines.number}
		s.skips[why] = k
	}
	k.Lines++
}
