package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// An id names a reservation or a permit. It holds what the server must know to end it, so that no
// server has to remember it and any instance can do it. It is not signed: a client that forges one
// can do no more than it can do without, which is to refund a cost of a key (/v1/refund) and to
// change the permit of a key whose 128 random bits it knows.

// reservation is what the id of a reservation holds.
type reservation struct {
	Rule   string  `json:"r,omitempty"`
	Limit  string  `json:"l,omitempty"` // inline
	Key    string  `json:"k"`
	Cost   int64   `json:"n"`           // that was charged
	Starts []int64 `json:"s,omitempty"` // of each limit, if it was booked ahead: Unix microseconds
}

// permit is what the id of a permit holds.
type permit struct {
	Rule string `json:"r"`
	Key  string `json:"k"`
	ID   string `json:"i"`
}

const (
	reservationMark = "r1."
	permitMark      = "p1."
	maxID           = 4*maxKey + 4096
)

// seal returns the id of v.
func seal(mark string, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: texts and numbers
	}
	return mark + base64.RawURLEncoding.EncodeToString(text)
}

// unseal reads an id that seal made.
func unseal(id, mark, want string, v any) error {
	bad := BadField("id", shorten([]byte(quote(id))), want)
	if id == "" {
		bad = BadField("id", "missing", want)
	}
	encoded, ok := strings.CutPrefix(id, mark)
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return bad
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad
	}
	return nil
}
