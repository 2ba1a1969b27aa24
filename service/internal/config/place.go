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
