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

// idKind is a kind of ids.
type idKind struct {
	mark   string // begins the ids
	signed bool
	want   string // in errors
}

var (
	reservationID = idKind{"r1.", true, "an id that /v1/reserve returned"}
	permitID      = idKind{"p1.", false, "an id that /v1/acquire returned"}
)

const maxID = 8*MaxKey + 4096 // a control character has 6 bytes in JSON, then 8 in base64

// encoding refuses ids whose unused bits were changed.
var encoding = base64.RawURLEncoding.Strict()

// seal returns the id of v.
func (k *idKey) seal(kind idKind, v any) string {
	text := idText(v)
	if kind.signed {
		text = append(text, k.sign(text)...)
	}
	return kind.mark + encoding.EncodeToString(text)
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

// unseal reads an id that seal made, also on another instance.
func (k *idKey) unseal(ctx context.Context, id string, kind idKind, v any) error {
	if id == "" {
		return problem.BadField("id", "missing", kind.want)
	}
	encoded, ok := strings.CutPrefix(id, kind.mark)
	text, err := encoding.DecodeString(encoded)
	ok = ok && err == nil
	if ok && kind.signed {
		if text, err = k.verified(ctx, text); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if ok = ok && d.Decode(v) == nil; ok {
		_, err = d.Token()
	}
	if !ok || !errors.Is(err, io.EOF) {
		return problem.BadField("id", jsonbody.Shorten([]byte(jsonbody.Quote(id))), kind.want)
	}
	return nil
}

// verified returns the text that comes before its signature.
func (k *idKey) verified(ctx context.Context, signed []byte) (text []byte, err error) {
	end := max(0, len(signed)-signatureSize)
	text, signature := signed[:end], signed[end:]
	if hmac.Equal(signature, k.sign(text)) {
		return text, nil
	}
	if err := k.read(ctx); err != nil { // another instance may have replaced it
		return nil, err
	}
	if !hmac.Equal(signature, k.sign(text)) {
		return nil, problem.BadField("id", "not signed with the key of these instances",
			reservationID.want)
	}
	return text, nil
}
