package overrides

import (
	"cmp"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/redisstore"
)

// sealedFields turns entries into fields of Redis that show no key, and back: the name of an
// override has the hash of its key, and all values are sealed. A nil one leaves them as they are.
type sealedFields struct {
	store *redisstore.Store
	box   *seal.Box
	names map[string]string // clear names of overrides, by those in Redis
}

func newSealedFields(store *redisstore.Store, box *seal.Box) *sealedFields {
	if box == nil {
		return nil
	}
	return &sealedFields{store, box, map[string]string{}}
}

// name returns the name in Redis.
func (f *sealedFields) name(name string) string {
	if f == nil || !isOverride(name) {
		return name
	}
	rule, key, _ := strings.Cut(name, " ")
	return KeyName(rule, f.store.StoredKey(key))
}

// value returns the value in Redis.
func (f *sealedFields) value(value string) string {
	if f == nil || value == anyValue {
		return value
	}
	return f.box.Seal(value)
}

// forget forgets all names, before all fields are opened again.
func (f *sealedFields) forget() {
	if f != nil {
		clear(f.names)
	}
}

// open returns the clear form of a field, and notes its name. One goroutine at a time calls it.
func (f *sealedFields) open(stored, sealed string) (name, value string) {
	name, value = f.clear(stored, sealed)
	switch {
	case f == nil:
	case sealed == "":
		name = cmp.Or(f.names[stored], stored)
		delete(f.names, stored)
	case name != stored:
		f.names[stored] = name
	}
	return name, value
}

// clear returns the clear form of a field. What was not sealed stays as it is, and is reported as a
// bad entry.
func (f *sealedFields) clear(stored, sealed string) (name, value string) {
	if f == nil {
		return stored, sealed
	}
	value, err := f.box.Open(sealed)
	if err != nil || value == "" || !isOverride(stored) {
		return stored, cmp.Or(value, sealed)
	}
	e, err := parse(stored, value)
	if err != nil {
		return stored, value
	}
	return KeyName(e.Rule, e.Key), value
}
