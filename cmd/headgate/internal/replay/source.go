package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
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
	reader *reader
	format Format // of the first request
	known  bool   // there was one
	entry  entry
	keyer  keyer
	names  *keyIDs
	facets *facets // nil unless they are counted
	saw    *witness
	agent  int // index of the user agent in entry.headers, if there is a witness
	order  reorder
	ended  bool
	skips  map[string]*Skip
	probe  int // requests in which a proxy is still looked for
	others int // of those before, that were forwarded for another address than proxy,
	proxy  string
}

func newSource(log Log, c Reading, to sink, p *progress) *source {
	s := &source{
		name:   log.Name,
		lines:  newLines(newStored(counted{log.Reader, p})),
		wanted: c.By.wanted(),
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
	s.wanted.names = c.Names
	if c.Format.layout == "" && s.wanted.client && !c.Names.hold(fieldAddr) {
		s.probe = probed
	}
	s.reader = newReader(c.Format, s.wanted, 2)
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
		s.skip(whyBlank, false, nil)
		return nil
	}
	if why := s.reader.parse(line, nil, &s.entry); why != "" {
		if s.known && (bytes.HasPrefix(line, []byte(gzipMagic)) ||
			bytes.IndexByte(line, 0) >= 0 && !utf8.Valid(line)) {
			return fmt.Errorf("line %d is compressed, after lines of text; give each file by name",
				s.lines.number)
		}
		s.skip(why, why != whyComment, line)
		return nil
	}
	if !s.known {
		s.known, s.format = true, s.reader.tried[s.reader.last]
	}
	key, why := s.keyer.make(&s.entry)
	if why != "" {
		s.skip(why, why == whyNoClient || why == whyNoRequest, line)
		return nil
	}
	r := record{at: s.entry.at, line: s.lines.number, key: s.names.id(key)}
	if s.probe > 0 {
		s.findProxy(line)
	}
	if s.saw != nil {
		s.saw.see(key, &s.entry, s.entry.headers[s.agent])
	}
	if s.facets != nil {
		r.facets = s.facets.of(&s.entry)
	}
	s.order.push(r)
	return nil
}

// probed is from how many requests of a log each tenth is compared with its X-Forwarded-For.
const probed = 1000

// forwarded is the first address of an X-Forwarded-For with a name, in a quoted column after
// another or at the end, in a list at the beginning, or in brackets after the client, as
// ingress-nginx has written it.
var forwarded = regexp.MustCompile(strings.ReplaceAll(`(?i:x[-_]?forwarded[-_]?for)\W{1,5}`+
	`([\da-fA-F]+[.:][\da-fA-F.:]+)|" "ADDRESS(?:,[^"]*)?" |"ADDRESS(?:,[^"]*)?"$|`+
	`^"?ADDRESS, |(?:^| )\S+ - \[ADDRESS[],]`,
	"ADDRESS", `((?:\d+\.){3}\d+|[\da-f]+:[\da-f:.]+)`))

func (s *source) findProxy(line []byte) {
	if s.probe--; s.probe%10 != 9 { // the expression takes as long as many lines
		return
	}
	if m := forwarded.FindSubmatch(line); m != nil {
		first := slices.Concat(m[1:]...)
		of := string(s.keyer.address(first))
		if client := string(s.keyer.address(s.entry.addr)); of != client && isAddress(first) {
			s.others, s.proxy = s.others+1, cmp.Or(s.proxy, client)
		}
	}
}

// noLine handles an error of reading a line.
func (s *source) noLine(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		s.ended = true
		return s.checkFormat()
	case errors.Is(err, errTooLong):
		s.skip(whyTooLong, true, nil)
		return nil
	}
	return err
}

func isBlank(line []byte) bool {
	return len(line) == 0 || line[0] <= ' ' && len(bytes.TrimSpace(line)) == 0
}

// checkFormat returns an error for a log without a line in a known format.
func (s *source) checkFormat() error {
	if s.known {
		return nil
	}
	var first *Skip
	for _, k := range s.skips {
		if !k.empty() && (first == nil || k.FirstLine < first.FirstLine) {
			first = k
		}
	}
	if first == nil {
		return nil
	}
	what := "a known log format"
	if s.reader.format != (Format{}) {
		what = "the format " + s.reader.format.String()
	}
	return fmt.Errorf("no line is in %s; %s", what, first.text())
}

// skip counts a line that is no request, or may be one that was not understood.
func (s *source) skip(why string, unread bool, line []byte) {
	k := s.skips[why]
	if k == nil {
		k = &Skip{Reason: why, File: s.name, FirstLine: s.lines.number, unread: unread}
		s.skips[why], k.help = k, help(why, line)
	}
	k.Lines++
}
