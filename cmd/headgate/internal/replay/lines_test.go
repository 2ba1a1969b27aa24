package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readLines gives every line of r, too long ones as "...", and how it ended.
func readLines(r io.Reader) (all []string, err error) {
	l := newLines(r)
	for {
		line, err := l.next()
		switch {
		case err == nil:
			all = append(all, string(line))
		case errors.Is(err, errTooLong):
			all = append(all, "...")
		case errors.Is(err, io.EOF):
			if l.number != int64(len(all)) {
				return nil, errors.New("lines are numbered wrong")
			}
			return all, nil
		default:
			return all, err
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 9000)
	most := strings.Repeat("y", longestLine)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"one", "a\n", []string{"a"}},
		{"no newline at the end", "a\nb", []string{"a", "b"}},
		{"blank", "\n\na\n\n", []string{"", "", "a", ""}},
		{"CRLF", "a\r\n\r\nb\r\n", []string{"a", "", "b"}},
		{"CR inside", "a\rb\n", []string{"a\rb"}},
		{"byte order mark", "\uFEFFa\n\uFEFFb\n", []string{"a", "\uFEFFb"}},
		{"over 8 KB", long + "\na\n" + long, []string{long, "a", long}},
		{"as long as can be", most + "\nb", []string{most, "b"}},
		{"too long", "a\n" + most + "y\nb", []string{"a", "...", "b"}},
		{"far too long", "a\n" + strings.Repeat(most, 3) + "\nb\n", []string{"a", "...", "b"}},
		{"too long at the end", "a\n" + strings.Repeat(most, 3), []string{"a", "..."}},
	} {
		for kind, r := range map[string]io.Reader{
			"":                  strings.NewReader(c.text),
			" in halves":        iotest.HalfReader(strings.NewReader(c.text)),
			" with EOF at once": iotest.DataErrReader(strings.NewReader(c.text)),
		} {
			if got, err := readLines(r); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s%s: %d lines, %v; want %d", c.name, kind, len(got), err, len(c.want))
			}
		}
	}
}

func TestLinesHoldLittle(t *testing.T) {
	l := newLines(io.LimitReader(zeros{}, 100<<20))
	if _, err := l.next(); !errors.Is(err, errTooLong) {
		t.Fatal(err)
	}
	if cap(l.long) > 2*longestLine {
		t.Errorf("%d bytes held of an endless line", cap(l.long))
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestLinesFail(t *testing.T) {
	broken := errors.New("broken")
	all, err := readLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !slices.Equal(all, []string{"a"}) {
		t.Errorf("%q, %v; want the whole line and the error", all, err)
	}
}

func zip(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		panic(err)
	}
	w.Close()
	return b.String()
}

// bzipped is what bzip2 -1 makes of two lines.
const bzipped = "\x42\x5a\x68\x31\x31\x41\x59\x26\x53\x59\x3c\x85\x41\x12\x00\x00\x01\x41\x00\x00\x10\x30\x00\x20\x00\x30\xcc\x0c\x7a\x82\x71\x77\x24\x53\x85\x09\x03\xc8\x54\x11\x20"

func TestStored(t *testing.T) {
	damaged := []byte(zip("a\nb\n"))
	damaged[len(damaged)-5] ^= 1
	for _, c := range []struct{ name, stored, want, err string }{
		{"plain", "a\nb\n", "a b", ""},
		{"one byte", "a", "a", ""},
		{"gzip", zip("a\nb\n"), "a b", ""},
		{"members", zip("a\n") + zip("") + zip("b\n"), "a b", ""},
		{"line across members", zip("a\nb") + zip("c\n"), "a bc", ""},
		{"cut off", zip("a\nb\n")[:20], "a b", "cut off"},
		{"cut off in the header", zip("a\nb\n")[:5], "", "cut off"},
		{"cut off in a later header", zip("a\n") + zip("b\n")[:5], "a", "cut off"},
		{"cut off in a later member", zip("a\nb\n") + zip("c\nd\n")[:12], "a b", "cut off"},
		{"something after it", zip("a\n") + "hello, this is no gzip", "a", "followed by something else"},
		{"a little after it", zip("a\n") + "hi", "a", "followed by something else"},
		{"one byte after it", zip("a\n") + "\n", "a", "followed by something else"},
		{"zstd", "\x28\xb5\x2f\xfd\x04\x00", "", "is zstd; type zstdcat FILE | headgate replay -"},
		{"bzip2", bzipped, "a b", ""},
		{"bzip2 of two streams", bzipped + bzipped, "a b a b", ""},
		{"bzip2, cut off", bzipped[:30], "", "damaged"},
		{"a host's name", "BZh9 x", "BZh9 x", ""},
		{"UTF-16", "\xff\xfea\x00", "", "is UTF-16; type iconv -f UTF-16 -t UTF-8 FILE"},
		{"tar", strings.Repeat("x", 257) + "ustar\x00", "", "is tar; type mkdir x && tar -xf FILE -C x, and give the files in x"},
		{"tar in gzip", zip(strings.Repeat("x", 257) + "ustar\x00"), "", "is tar"},
		{"xz", "\xfd7zXZ\x00\x00\x04", "", "is xz; type xzcat FILE"},
		{"zip", "PK\x03\x04\x14\x00", "", "is zip; type unzip -d x FILE"},
		{"damaged", string(damaged), "a b", "checksum"},
	} {
		got, err := readLines(newStored(strings.NewReader(c.stored)))
		if err == nil {
			err = errors.New("")
		}
		if strings.Join(got, " ") != c.want || (err.Error() == "") != (c.err == "") || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q %v; want %q %q", c.name, got, err, c.want, c.err)
		}
	}
}
