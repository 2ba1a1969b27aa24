package config

import (
	"errors"

	"github.com/headgate/headgate/cmd/headgate/internal/yamlnode"
)

// Place is a line of a file.
type Place = yamlnode.Place

// Fault is one of the faults that an error of [Load] joins.
type Fault = yamlnode.Fault //nolint:errname // as there

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
