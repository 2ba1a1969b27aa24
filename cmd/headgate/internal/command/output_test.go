package command

import (
	"testing"
	"time"
)

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 90 * time.Second: "1m30s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 61 * time.Minute: "1h1m",
	} {
		if got := Short(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"/a b", "/a b"},
		{"/ä…😀", "/ä…😀"},
		{"\x1b[2J\r\n\t\x00\x7f", `\x1b[2J\r\n\t\x00\x7f`},
		{"\xff\xfe/", `\xff\xfe/`},
		{"\u202eabc\u0085", `\u202eabc\u0085`},
		{"\ufffd", "\ufffd"},
		{`a'b"c\d`, `a'b"c\d`},
	} {
		if got := Printable(c.text); got != c.want {
			t.Errorf("%q is %s, want %s", c.text, got, c.want)
		}
	}
}
