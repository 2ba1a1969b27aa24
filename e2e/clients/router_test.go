//go:build clients

package clients

import (
	"bufio"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strconv"
	"strings"
)

// route starts a proxy that sends each command to one of some servers by its first key, as proxies
// of sharded servers do, and returns its address. It ends with the process.
func route(ctx context.Context, servers ...string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go routeOne(ctx, client, servers)
		}
	}()
	return listener.Addr().String(), nil
}

func routeOne(ctx context.Context, client net.Conn, servers []string) {
	defer client.Close()
	conns, replies := make([]net.Conn, len(servers)), make([]*bufio.Reader, len(servers))
	for i, address := range servers {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		defer conn.Close()
		conns[i], replies[i] = conn, bufio.NewReader(conn)
	}
	for in := bufio.NewReader(client); ; {
		raw, words, err := message(in)
		if err != nil {
			return
		}
		key, at := "", 1
		if strings.HasPrefix(strings.ToLower(words[0]), "eval") {
			at = 3
		}
		if len(words) > at {
			key = words[at]
		}
		n := crc32.ChecksumIEEE([]byte(key)) % uint32(len(servers))
		if _, err := io.WriteString(conns[n], raw); err != nil {
			return
		}
		reply, _, err := message(replies[n])
		if err != nil {
			return
		}
		if _, err := io.WriteString(client, reply); err != nil {
			return
		}
	}
}

// message reads one message of RESP 2 or 3, and returns it as it is and its texts.
func message(in *bufio.Reader) (raw string, texts []string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, []string{""}, nil
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(in, text)
		return line + string(text), []string{string(text[:n])}, err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		raw = line
		for range n {
			part, some, err := message(in)
			if err != nil {
				return "", nil, err
			}
			raw, texts = raw+part, append(texts, some...)
		}
		return raw, texts, nil
	case '+', '-', ':', '_', ',', '#', '(':
		return line, []string{strings.TrimSpace(line[1:])}, nil
	}
	return "", nil, fmt.Errorf("an unknown message: %q", line)
}
