package certs

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client shows the certificate that is in its files at the time of the handshake.
func TestClient(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	own, ownKey := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem")
	ca.issue(t, "one.example", cert, key)
	ca.issue(t, "server.example", own, ownKey)
	server, err := New(Files{Cert: own, Key: ownKey, ClientCA: ca.file, ClientSAN: "two.example"},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := Client(ca.file, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	client.ServerName = "server.example"
	if _, err := handshake(t, server, client); err == nil {
		t.Error("the name of the client is not checked")
	}
	ca.issue(t, "two.example", cert, key)
	if shown, err := handshake(t, server, client); err != nil || shown == nil {
		t.Errorf("with a renewed certificate: %v, %v", shown, err)
	}
	for _, files := range [][3]string{{"nowhere"}, {"client.go"}, {"", cert}, {"", cert, cert}} {
		if _, err := Client(files[0], files[1], files[2]); err == nil {
			t.Errorf("%q are accepted", files)
		}
	}
}

// What is no regular file is refused: a handshake would wait for a named pipe.
func TestIrregularFiles(t *testing.T) {
	const irregular = os.DevNull
	_, ca := Client(irregular, "", "")
	_, cert := Client("", irregular, irregular)
	for _, err := range []error{ca, cert, Check(Files{Cert: irregular, Key: irregular})} {
		if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
			t.Error(err)
		}
	}
}
