package replay

import (
	"bytes"
	"strings"
)

// w3cParser reads the W3C Extended Log File Format: a line #Fields names the
// columns of the lines that follow, separated by spaces or tabs. Times are in UTC.
// https://www.w3.org/TR/WD-logfile
type w3cParser struct {
	wanted
	times   timestamps
	columns []column
	scratch []byte
}

// column is the meaning of a column. header is its index in wanted.headers, or -1.
type column struct {
	field  w3cField
	header int
}

type w3cField uint8

const (
	w3cNone w3cField = iota
	w3cDate
	w3cTime
	w3cAddr
	w3cMethod
	w3cTarget
	w3cHost
	w3cStatus
)

var w3cFields = map[string]w3cField{
	"date": w3cDate, "time": w3cTime,
	"c-ip": w3cAddr, "c-dns": w3cAddr,
	"cs-method": w3cMethod,
	"cs-uri":    w3cTarget, "cs-uri-stem": w3cTarget,
	"sc-status": w3cStatus,
	"cs-host":   w3cHost, "cs(host)": w3cHost, "x-host-header": w3cHost,
}

func (p *w3cParser) known() bool { return p.columns != nil }

func (p *w3cParser) parse(line []byte, e *entry) string {
	if line[0] == '#' {
		if fields, ok := bytes.CutPrefix(line, []byte("#Fields:")); ok {
			p.readFields(string(fields))
		}
		return whyHeader
	}
	if p.columns == nil {
		return "before the #Fields of the W3C format"
	}
	var date, clock []byte
	rest := line
	between := byte(' ')
	if bytes.IndexByte(line, '\t') >= 0 {
		between = '\t'
	}
	for _, c := range p.columns {
		if len(rest) == 0 {
			return "fewer columns than #Fields names"
		}
		var v []byte
		v, rest = w3cColumn(rest, between)
		switch v = present(v); c.field {
		case w3cDate:
			date = v
		case w3cTime:
			clock = v
		default:
			p.set(c, v, e)
		}
	}
	p.scratch = append(append(append(p.scratch[:0], date...), ' '), clock...)
	at, ok := p.times.read(p.scratch)
	if !ok {
		return "no time that can be read"
	}
	e.at = at
	return ""
}

// set stores the value of a column in e.
func (p *w3cParser) set(c column, v []byte, e *entry) {
	switch c.field {
	case w3cAddr:
		e.addr = v
	case w3cMethod:
		e.method = v
	case w3cTarget:
		e.target = v
	case w3cHost:
		e.host = v
	case w3cStatus:
		e.status = v
	}
	if c.header >= 0 {
		e.headers[c.header] = v
	}
}

func (p *w3cParser) readFields(names string) {
	p.columns = []column{}
	for name := range strings.FieldsSeq(names) {
		name = strings.ToLower(name)
		c := column{w3cFields[name], -1}
		if h, ok := strings.CutPrefix(name, "cs("); ok {
			h = headerName(strings.TrimSuffix(h, ")"))
			for i, w := range p.headers {
				if w == h {
					c.header = i
				}
			}
		}
		p.columns = append(p.columns, c)
	}
}

// w3cColumn cuts the first column off b, which is not empty. One that begins with
// a quote ends with one. Several spaces count as one, several tabs do not.
func w3cColumn(b []byte, between byte) (v, rest []byte) {
	end := -1
	if b[0] == '"' {
		if end = bytes.IndexByte(b[1:], '"'); end >= 0 {
			v, b = b[1:1+end], b[end+2:]
		}
	}
	i := bytes.IndexByte(b, between)
	if i < 0 {
		i = len(b)
	}
	if end < 0 {
		v = b[:i]
	}
	rest = b[min(i+1, len(b)):]
	if between == ' ' {
		rest = bytes.TrimLeft(rest, " ")
	}
	return v, rest
}
