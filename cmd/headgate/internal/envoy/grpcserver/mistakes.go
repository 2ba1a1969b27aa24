package grpcserver

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"syscall"

	"golang.org/x/net/http2"
)

// mistake is what a client of the listener does wrong, with the fix. It is empty if a client makes
// none, or disconnects before it sends anything, as health checks of load balancers do.
type mistake string

const (
	speaksTLS mistake = "the client uses TLS, but this listener does not: set tls.cert and " +
		"tls.key, or remove TLS from the client (in Envoy, the transport_socket of the cluster)"
	speaksPlainText mistake = "the client does not use TLS, but this listener has a " +
		"certificate: add TLS to the client (in Envoy, a transport_socket of the cluster), or " +
		"remove tls.cert and tls.key"
	speaksHTTP1 mistake = "the client uses HTTP/1, but this listener is for gRPC: use HTTP/2 (in " +
		"Envoy, http2_protocol_options of the cluster), or the address of --http"
	speaksPROXY mistake = "the client sends the PROXY protocol, which this listener does not " +
		"read: disable it in the load balancer"
	speaksOther mistake = "the client uses neither HTTP/2 nor TLS, but this listener is for gRPC"
	failsInTLS  mistake = "the TLS handshake failed: check the certificates and authorities of " +
		"both sides, and that the client offers h2 (ALPN)"
)

var (
	startOfHTTP1 = regexp.MustCompile(`^[A-Z]{3,}( |$)`)
	startOfPROXY = regexp.MustCompile(`^(PROXY( |$)|\r\n\r\n\x00)`) // of both versions
)

// mistakeInPreface returns the mistake of a client that sends b first.
func mistakeInPreface(b []byte) mistake {
	n := min(len(b), len(http2.ClientPreface))
	switch {
	case string(b[:n]) == http2.ClientPreface[:n]:
		return ""
	case b[0] == 0x16: // a record of a handshake
		return speaksTLS
	case startOfPROXY.Match(b):
		return speaksPROXY
	case startOfHTTP1.Match(b):
		return speaksHTTP1
	}
	return speaksOther
}

// mistakeInHandshake returns the mistake of a client whose TLS handshake failed with err.
func mistakeInHandshake(err error) mistake {
	if record, is := errors.AsType[tls.RecordHeaderError](err); is {
		switch mistakeInPreface(record.RecordHeader[:]) {
		case "", speaksHTTP1:
			return speaksPlainText
		case speaksPROXY:
			return speaksPROXY
		case speaksOther:
			return speaksOther
		}
		return failsInTLS
	}
	for _, leaves := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET,
	} {
		if errors.Is(err, leaves) {
			return ""
		}
	}
	return failsInTLS
}
