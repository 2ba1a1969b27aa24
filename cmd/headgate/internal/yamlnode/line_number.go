// Package yamlnode expands YAML documents, and names the places of faults in them.
package yamlnode

import "strconv"

// Place is a line of a file.
type Place struct {
	File string
	Line int // from 1; 0: not known
}

// String returns the place as file:line.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// Fault is an error in a file.
type Fault struct { //nolint:errname // the word of the documentation
	Place

	Text string
}

// Error returns the place and the text.
func (f *Fault) Error() string { return f.String() + ": " + f.Text }
