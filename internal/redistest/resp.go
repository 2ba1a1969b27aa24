package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ReplyError is a command refused by Redis, in its words: "NOAUTH Authentication required."
type ReplyError string

func (e ReplyError) Error() string { return "redistest: Redis says: " + string(e) }

// doTimeout bounds do when its context has no deadline.
const doTimeout = time.Minute

// do sends commands over a new connection, one after the other, and returns the
// reply to the last of them.
func do(ctx context.Context, network, addr string, commands ...[]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, doTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	r, reply := bufio.NewReader(conn), ""
	for _, command := range commands {
		if _, err := io.WriteString(conn, encode(command)); err != nil {
			return "", fmt.Errorf("redistest: %w", err)
		}
		if reply, err = readReply(r); err != nil {
			return "", err
		}
	}
	return reply, nil
}

// encode writes a command as RESP, an array of bulk strings.
func encode(command []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, arg := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

// readReply reads one reply of RESP 2 as text.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("redistest: read a reply: %w", err)
	}
	kind, rest := line[0], strings.TrimRight(line[1:], "\r\n")
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", ReplyError(rest)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", err
		}
		if kind == '*' {
			return readArray(r, n)
		}
		buf := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(r, buf); err != nil {
			return "", fmt.Errorf("redistest: read a reply: %w", err)
		}
		return string(buf[:n]), nil
	}
	return "", fmt.Errorf("redistest: not a Redis reply: %q", line)
}

func readArray(r *bufio.Reader, n int) (string, error) {
	elements := make([]string, n)
	for i := range elements {
		var err error
		if elements[i], err = readReply(r); err != nil {
			return "", err
		}
	}
	return strings.Join(elements, "\n"), nil
}
