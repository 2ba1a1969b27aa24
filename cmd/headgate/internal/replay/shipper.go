package replay

import "regexp"

// shipped is what shippers write before a line. The groups are two times with a year,
// and the bracket of what is no request without the time before it.
var shipped = regexp.MustCompile(`^(?:` +
	// RFC 5424, or the priority that comes before what follows
	`<\d+>1 (\S+)(?: \S+){4} (?:- |(?:\[(?:[^\]\\]|\\.)*\])+ )\x{FEFF}?|<\d+>|` +
	// RFC 3164: Dec 17 09:03:01 web1 nginx[812]:
	`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:(?:\S+ )?[A-Za-z_(/]\S*: )?|` +
	// rsyslog and Kubernetes, or a time only
	`(\d{4}-\d\d-\d\dT\S+) (?:std(?:out|err) \S |(?:\S+ )?[A-Za-z_(/]\S*: |([\[{]))|` +
	// docker compose, kubectl logs --prefix
	`\[pod/\S+\] |[A-Za-z][\w.-]* +\| )`)

// isBare reports whether a line begins with a brace or an address, as most do that no shipper has
// written.
func isBare(line []byte) bool {
	return len(line) < 6 || line[0] == '{' || isDigit(line[0]) && line[4] != '-'
}

// unship cuts off what shippers have written before a line, and returns the time in that, if there
// is one with a year, or stamp.
func unship(line, stamp []byte) (rest, time []byte) {
	for range 4 { // Compose may show what Kubernetes has of syslog
		if isBare(line) {
			break
		}
		at := shipped.FindSubmatchIndex(line)
		if at == nil {
			break
		}
		for i := 2; i < 6; i += 2 {
			if at[i] >= 0 {
				stamp = line[at[i]:at[i+1]]
			}
		}
		line = line[at[1]-(at[7]-at[6]):] // with the bracket
	}
	return line, stamp
}
