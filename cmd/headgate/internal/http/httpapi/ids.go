package httpapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/http/problem"
)

// An id names a reservation or a permit. It holds what the server must know to end it, so that no
// server has to remember it and any instance can do it. The id of a reservation is signed, because
// a forged one would be a refund. That of a permit is not: it has 128 random bits, without which
// nobody can change the permit.

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
	maxID           = 8*MaxKey + 4096 // a control character has 6 bytes in JSON, then 8 in base64
)

// encoding refuses ids whose unused bits were changed.
var encoding = base64.RawURLEncoding.Strict()

// seal returns the id of v.
func seal(mark string, v any) string { return mark + encoding.EncodeToString(idText(v)) }

// sealSigned returns the id of v, with its signature.
func (k *idKey) sealSigned(mark string, v any) string {
	text := idText(v)
	return mark + encoding.EncodeToString(append(text, k.sign(text)...))
}

func idText(v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // the id would be longer
	if err := e.Encode(v); err != nil {
		panic(err) // cannot happen: texts and numbers
	}
	return bytes.TrimSpace(text.Bytes())
}

// unseal reads an id that seal made.
func unseal(id, mark, want string, v any) error {
	text, err := decodeID(id, mark, want)
	if err != nil {
		return err
	}
	return parseID(id, text, want, v)
}

// unsealSigned reads an id that sealSigned made, also on another instance.
func (k *idKey) unsealSigned(ctx context.Context, id, mark, want string, v any) error {
	signed, err := decodeID(id, mark, want)
	if err != nil {
		return err
	}
	end := max(0, len(signed)-signatureSize)
	text, signature := signed[:end], signed[end:]
	if !hmac.Equal(signature, k.sign(text)) {
		if err := k.read(ctx); err != nil { // another instance may have replaced it
			return err
		}
		if !hmac.Equal(signature, k.sign(text)) {
			return problem.BadField("id", "not signed with the key of these instances",
				want)
		}
	}
	return parseID(id, text, want, v)
}

func decodeID(id, mark, want string) (text []byte, err error) {
	if id == "" {
		return nil, problem.BadField("id", "missing", want)
	}
	encoded, ok := strings.CutPrefix(id, mark)
	text, err = encoding.DecodeString(encoded)
	if !ok || err != nil {
		return nil, badID(id, want)
	}
	return text, nil
}

func parseID(id string, text []byte, want string, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badID(id, want)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badID(id, want)
	}
	return nil
}

func badID(id, want string) error {
	return problem.BadField("id", jsonbody.Shorten([]byte(jsonbody.Quote(id))), want)
}
