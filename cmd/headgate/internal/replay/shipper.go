package replay

import "bytes"

// unship cuts off what shippers have written before a line: syslog, Kubernetes, Docker Compose. It
// returns the time in that, if there is one with a year.
func unship(line []byte) (rest, stamp []byte) {
	for range 4 { // Compose may show what Kubernetes has of syslog
		n, at := prefix(line)
		if n == 0 {
			break
		}
		line = line[n:]
		if at != nil {
			stamp = at
		}
	}
	return line, stamp
}

// prefix returns the length of what a shipper has written before b, and the time in it.
func prefix(b []byte) (n int, stamp []byte) {
	if len(b) < 16 {
		return 0, nil
	}
	switch {
	case b[0] == '<': // the priority of syslog
		i := bytes.IndexByte(b[:6], '>')
		if i > 1 && bytes.HasPrefix(b[i+1:], []byte("1 ")) {
			return syslogHead(b, i+3)
		}
		return i + 1, nil
	case b[3] == ' ' && b[6] == ' ' && b[9] == ':' && b[12] == ':' && b[15] == ' ':
		return 16 + tag(b[16:]), nil // Dec 17 09:03:01 web1 nginx[812]:
	case b[4] == '-' && b[7] == '-' && b[10] == 'T':
		stamp, rest := word(b)
		head := len(stamp) + 1
		switch {
		case len(rest) == 0:
		case bytes.HasPrefix(rest, []byte("stdout ")), bytes.HasPrefix(rest, []byte("stderr ")):
			if len(rest) > 9 && rest[8] == ' ' {
				return head + 9, stamp
			}
		case tag(rest) > 0:
			return head + tag(rest), stamp
		case rest[0] == '[', rest[0] == '{':
			return head, stamp
		}
		return 0, nil
	}
	// web-1  | of Compose, [pod/web-1/nginx] of kubectl
	first, rest := word(b)
	if bytes.HasPrefix(first, []byte("[pod/")) {
		return len(first) + 1, nil
	}
	if rest = bytes.TrimLeft(rest, " "); bytes.HasPrefix(rest, []byte("| ")) && !isAddress(first) {
		return len(b) - len(rest) + 2, nil
	}
	return 0, nil
}

// syslogHead returns the length of b up to the message of RFC 5424, whose time is at b[i].
func syslogHead(b []byte, i int) (n int, stamp []byte) {
	stamp, rest := word(b[i:])
	for range 4 { // host, application, process, message ID
		_, rest = word(rest)
	}
	if rest2, ok := bytes.CutPrefix(rest, []byte("- ")); ok {
		rest = rest2
	} else if end := bytes.Index(rest, []byte("] ")); end > 0 && rest[0] == '[' {
		rest = rest[end+2:]
	} else {
		return 0, nil
	}
	rest = bytes.TrimPrefix(rest, []byte("\uFEFF"))
	return len(b) - len(rest), stamp
}

// tag returns the length of the name of a program and a colon, perhaps after that of a host, at the
// beginning of b.
func tag(b []byte) (n int) {
	for range 2 {
		w, _ := word(b[n:])
		if n += len(w) + 1; len(w) == 0 || n > len(b) {
			return 0
		}
		if w[len(w)-1] == ':' && !isAddress(w) {
			return n
		}
	}
	return 0
}
