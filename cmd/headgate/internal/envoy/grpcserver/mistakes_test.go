package grpcserver

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// keyPair returns a certificate and the authorities that know it.
func keyPair(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	return s.TLS.Certificates[0], known
}

// What a client does wrong at the listener is reported with what is right. A client that leaves
// without a word makes no mistake.
func TestMistakes(t *testing.T) {
	pair, known := keyPair(t)
	plain := (*tls.Config)(nil)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	mutual := secure.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, known
	send := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }
	shake := func(o *tls.Config, text string) func(net.Conn) {
		return func(c net.Conn) {
			o.ServerName = "example.com"
			client := tls.Client(c, o)
			_, _ = io.WriteString(client, text)
			_, _ = io.Copy(io.Discard, client) // the alert of the server
		}
	}
	for name, c := range map[string]struct {
		server *tls.Config
		client func(net.Conn)
		want   mistake
	}{
		"HTTP/1":                 {plain, send("GET /healthcheck HTTP/1.1\r\nHost: h\r\n\r\n"), speaksHTTP1},
		"HTTP/1 for a proxy":     {plain, send("GET http://h/ HTTP/1.0\r\n\r\n"), speaksHTTP1},
		"TLS":                    {plain, shake(&tls.Config{RootCAs: known}, ""), speaksTLS},
		"PROXY protocol":         {plain, send("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + http2.ClientPreface), speaksPROXY},
		"PROXY protocol 2":       {plain, send("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x01\x00\x02"), speaksPROXY},
		"PROXY protocol to TLS":  {secure, send("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n\x16\x03\x01"), speaksPROXY},
		"PROXY 2 to TLS":         {secure, send("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"), speaksPROXY},
		"Redis":                  {plain, send("*1\r\n$4\r\nPING\r\n"), speaksOther},
		"nothing":                {plain, send(""), ""},
		"h2c":                    {plain, send(http2.ClientPreface), ""},
		"a part of h2c":          {plain, send(http2.ClientPreface[:7]), ""},
		"h2c to TLS":             {secure, send(http2.ClientPreface), speaksPlainText},
		"HTTP/1 to TLS":          {secure, send("POST /auth HTTP/1.1\r\n\r\n"), speaksPlainText},
		"Redis to TLS":           {secure, send("*1\r\n$4\r\nPING\r\n"), speaksOther},
		"nothing to TLS":         {secure, send(""), ""},
		"a part of TLS":          {secure, send("\x16\x03\x01\x02\x00\x01"), ""},
		"without ALPN":           {secure, shake(&tls.Config{RootCAs: known}, ""), failsInTLS},
		"HTTP/1 by ALPN":         {secure, shake(&tls.Config{RootCAs: known, NextProtos: []string{"http/1.1"}}, ""), failsInTLS},
		"an unknown authority":   {secure, shake(&tls.Config{NextProtos: []string{"h2"}}, ""), failsInTLS},
		"HTTP/1 in TLS":          {secure, shake(&tls.Config{RootCAs: known, NextProtos: []string{"h2"}}, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"), speaksHTTP1},
		"no certificate":         {mutual, shake(&tls.Config{RootCAs: known, NextProtos: []string{"h2"}}, ""), failsInTLS},
		"nothing, to mutual TLS": {mutual, send(""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 9)
			_, address := serve(t, deciderFunc(echo), Options{TLS: c.server, Refused: func(client net.Addr, m string, err error) {
				if client == nil || (err == nil) != (c.server == nil || m == string(speaksHTTP1)) {
					t.Errorf("%v: %v", client, err)
				}
				got <- m
			}})
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			c.client(conn)
			if c.want != "" {
				select {
				case m := <-got:
					if m != string(c.want) {
						t.Errorf("%q; want %q", m, c.want)
					}
				case <-time.After(time.Minute):
					t.Error("nothing was reported")
				}
			}
			// The server has read what was sent when it closes the connection.
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
			if len(got) > 0 {
				t.Errorf("reported also: %q", <-got)
			}
		})
	}
}

// A client of gRPC makes none.
func TestNoMistake(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{Refused: func(_ net.Addr, m string, _ error) { t.Error(m) }})
	_, err := grpc_health_v1.NewHealthClient(dial(t, address)).Check(t.Context(), nil)
	if err != nil && strings.Contains(err.Error(), "transport") {
		t.Error(err)
	}
}
