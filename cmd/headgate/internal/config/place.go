package config

import (
	"regexp"
	"strconv"
)

// Place is a line of a file.
type Place struct {
	File string
	Line int // from 1; 0: not known
}

var faultPlace = regexp.MustCompile(`^(.+?):(\d+): `)

// PlaceOf returns the place of the first fault in err, an error of [Load].
func PlaceOf(err error) (p Place, ok bool) {
	m := faultPlace.FindStringSubmatch(err.Error())
	if m == nil {
		return Place{}, false
	}
	line, conversion := strconv.Atoi(m[2])
	return Place{m[1], line}, conversion == nil
}

// Fault is one of the faults that an error of [Load] joins.
type Fault struct {
	Place

	Text string // without the place
}

// Faults returns the faults in err, in their order.
func Faults(err error) (list []Fault) {
	several, ok := err.(interface{ Unwrap() []error }) // only the outermost
	if ok {
		for _, e := range several.Unwrap() {
			list = append(list, Faults(e)...)
		}
		return list
	}
	f := Fault{Text: err.Error()}
	if p, ok := PlaceOf(err); ok {
		f.Place = p
		f.Text = f.Text[len(faultPlace.FindString(f.Text)):]
	}
	return []Fault{f}
}
