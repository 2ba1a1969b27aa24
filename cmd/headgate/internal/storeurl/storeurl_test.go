package storeurl

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

func TestWithoutPassword(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"redis://h:6379/0", "redis://h:6379/0"},
		{"redis://u:secret@h:6379", "redis://u:...@h:6379"},
		{"redis://:secret@h", "redis://:...@h"},
		{"redis://secret@h", "redis://...@h"}, // a password in the place of the user
		{"redis+cluster://u:sec:r@et@a:1,b:2", "redis+cluster://u:...@a:1,b:2"},
		{"u:secret@h", "...@h"},
		{"memory:", "memory:"},
		{"", ""},
	} {
		if got := WithoutPassword(c.url); got != c.want {
			t.Errorf("%s is shown as %s, want %s", c.url, got, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	for url, name := range map[string]string{
		"memory:": "memory:", "memory": "memory:", "redis://127.0.0.1:1": "redis://127.0.0.1:1",
	} {
		s, err := Open(url)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != name || s.Permits == nil || s.Memory() != strings.HasPrefix(name, "memory") {
			t.Errorf("%s opens %+v", url, s)
		}
		s.Close()
	}
	for url, want := range map[string]string{
		"localhost:6379":       `headgate: store is "localhost:6379"; want a scheme; did you mean redis://localhost:6379?`,
		"[::1]:6379":           `headgate: store is "[::1]:6379"; want a scheme; did you mean redis://[::1]:6379?`,
		"localhost:hush":       `headgate: store is "localhost:hush"; want ` + Want,
		"hush@localhost:6379":  `headgate: store is "...@localhost:6379"; want ` + Want,
		":hush@localhost:6379": `headgate: store is "...@localhost:6379"; want ` + Want,
	} {
		if _, err := Open(url); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", url, err, want)
		}
	}
	_, err := Open("postgres://u:secret@h")
	if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || strings.Contains(err.Error(), "secret") {
		t.Errorf("another scheme: %v", err)
	}
}
