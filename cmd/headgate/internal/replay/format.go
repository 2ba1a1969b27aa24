package replay

import (
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// entry is the request in a log line. Its slices point into the line or the parser, and are valid
// until the next line. Fields that the line does not hold, or that By does not need, are empty.
type entry struct {
	at      int64 // microseconds since the Unix epoch
	addr    []byte
	method  []byte
	target  []byte // of the request: path and query
	status  []byte // of the response
	host    []byte
	headers [][]byte // in the order of wanted.headers
	odd     bool     // the line has a request, which is not one of HTTP
	stamp   []byte   // the time that a shipper has added, for lines without one
}

func (e *entry) clear(stamp []byte) {
	headers := e.headers
	clear(headers)
	*e = entry{}
	e.headers, e.stamp = headers, stamp
}

// wanted are the fields that a parser must find, in addition to the time.
type wanted struct {
	client  bool
	request bool // method or target
	status  bool
	headers []string // canonical by headerName
	names   Names
}

// A parser reads the lines of one format.
type parser interface {
	// parse reads line into e, which is empty. It returns "", or the reason why the line
	// cannot be used.
	parse(line []byte, e *entry) (why string)
}

// Format is the format of the lines of a log. The zero value is that of each line, if it is one
// of [FormatNames].
type Format struct {
	name   string
	layout string // in the notation of nginx's log_format; $_ is of no interest
}

const guessed = "auto"

// formats are the known formats, in the order in which a line is tried.
var formats = []Format{
	{"json", ""},
	{"haproxy", `$client [$time] $_ $_ $_ $status $_ $_ $_ $_ $_ $_"$request"`},
	{"combined", ""},
	{"common", ""},
	{"s3", `$_ $_ [$time] $client $_ $_ $_ $_ "$request" $status `},
	{"istio", `[$time] "$method $path $_" $status $_ $_ $_ "$_" $_ $_ $_ $_ ` +
		`"$_" "$user_agent" "$_" "$authority" "$_" $_ $_ $_ $client `},
	{"envoy", `[$time] "$method $path $_" $status $_ $_ $_ $_ $_ ` +
		`"$x_forwarded_for" "$user_agent" "$_" "$authority" "`},
	{"npm", `[$time] $status - $method $_ $host "$path" [Client $client] ` +
		`$_"$user_agent" "$referer"`},
	{"alb", `$_ $time $_ $client $_ $_ $_ $_ $status $_ $_ $_ "$request" "$user_agent"`},
	{"elb", `$time $_ $client $_ $_ $_ $_ $status $_ $_ $_ "$request" "$user_agent"`},
	{"squid", `$time $_ $client $_/$status $_ $method $url `},
	{"w3c", ""},
}

// FormatNames are the names that [ParseFormat] knows.
func FormatNames() string {
	names := []string{guessed}
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// ParseFormat reads the name of a format, or a format in the notation of nginx's log_format.
func ParseFormat(text string) (Format, error) {
	i := slices.IndexFunc(formats, func(f Format) bool { return strings.EqualFold(f.name, text) })
	switch {
	case strings.EqualFold(text, guessed):
		return Format{}, nil
	case i >= 0:
		return formats[i], nil
	case isLayout(text):
		return Format{text, text}, nil
	}
	return Format{}, &headgate.InvalidError{
		Field: "format", Value: quoted(text),
		Want: FormatNames() + ", or a log_format of nginx, such as '$remote_addr [$time_local]'",
	}
}

// String returns the text that [ParseFormat] reads.
func (f Format) String() string {
	if f.name == "" {
		return guessed
	}
	return f.name
}

// MarshalText returns the name of f.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func newParser(f Format, w wanted) parser {
	switch f.name {
	case "json":
		return &jsonParser{collector: collector{wanted: w}}
	case "combined", "common":
		return &clfParser{wanted: w}
	}
	return newLayout(f, w)
}
