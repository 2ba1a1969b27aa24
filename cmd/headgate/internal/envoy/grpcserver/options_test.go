package grpcserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

func TestTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	defer certified.Close()
	_, address := serve(t, deciderFunc(echo), Options{TLS: &tls.Config{
		Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12,
	}})
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	conn, err := grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(
		credentials.NewClientTLSFromCert(roots, "example.com")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := ask(t, conn); err != nil {
		t.Error(err)
	}
	if _, err := ask(t, dial(t, address)); status.Code(err) != codes.Unavailable {
		t.Errorf("without TLS: %v", err)
	}
}

func TestConnectionsEndAtTheirAge(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{
		MaxConnectionAge: 20 * time.Millisecond, MaxConnectionAgeGrace: 20 * time.Millisecond,
	})
	r := dialRaw(t, address)
	r.headers(1)
	r.message(1)
	if got := r.until(1); got != "0" {
		t.Errorf("a young connection: %q", got)
	}
	if got := r.until(3); got != "closed" {
		t.Errorf("an old connection: %q", got)
	}
}
