package config

import (
	"errors"

	"github.com/headgate/headgate/cmd/headgate/internal/yamlnode"
)

// Place is a line of a file.
type Place = yamlnode.Place

// Fault is one of the faults that an error of [Load] joins.
type Fault = yamlnode.Fault //nolint:errname // as there

// PlaceOf returns the place of the first fault in err, an error of [Load].
func PlaceOf(err error) (p Place, ok bool) {
	if f, ok := errors.AsType[*Fault](err); ok && f.Line > 0 {
		return f.Place, true
	}
	return Place{}, false
}

// Faults returns the faults in err, in their order.
func Faults(err error) (list []Fault) {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // only the outermost
		for _, e := range several.Unwrap() {
			list = append(list, Faults(e)...)
		}
		return list
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return []Fault{*f}
	}
	return []Fault{{Text: err.Error()}}
}
