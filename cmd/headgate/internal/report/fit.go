package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// Bounds of a page, in bytes of JSON. maxFiles is a number of files.
const (
	maxName    = 1024 // a name, on a page of one limit
	minName    = 200  // a name, on a page of many limits
	maxCommand = 4000
	maxFiles   = 20
)

// fit shortens d until its page is below 1 MB, and returns the parts of the page that need no
// script. It leaves out the keys that were denied least, and the ends of long names. Counts stay
// exact.
func (d *Data) fit() (parts []string, err error) {
	limits := max(1, len(d.Limits))
	name := max(minName, maxName/limits)
	d.Command = cut(d.Command, maxCommand)
	d.Size.Files, d.Replay.Files = fitFiles(d.Size.Files, name), fitFiles(d.Replay.Files, name)
	for i := range d.Size.Proposals {
		d.Size.Proposals[i].Top = nil // the page has other lists
	}
	for i := range d.Replay.Limits {
		d.Replay.Limits[i].Top = nil
	}
	if s := d.Size.StandOut; s != nil {
		s.Rest.Top = nil
		for i := range s.Keys {
			s.Keys[i].Key = cut(s.Keys[i].Key, name)
		}
	}
	cutNames(d.Replay.Detail, name)
	if parts, err = d.parts(); err != nil {
		return nil, err
	}
	keys := d.Replay.Detail.Keys
	d.Replay.Detail.Keys = make([][]replay.DeniedKey, len(keys))
	most := MaxDataBytes - size(d) - len(strings.Join(parts, ""))
	if most < 0 {
		return nil, fmt.Errorf("the report would have %d KB too much: use fewer limits or files",
			-most/1000+1)
	}
	for i := range keys { // share what the others leave
		d.Replay.Detail.Keys[i] = fitKeys(keys[i], most/limits)
	}
	return parts, nil
}

// cutNames leaves name bytes of each name.
func cutNames(d *replay.Detail, name int) {
	for _, keys := range d.Keys {
		for i := range keys {
			keys[i].Key = cut(keys[i].Key, name)
		}
	}
	for _, groups := range [][]replay.Group{d.Paths, d.Methods, d.Statuses} {
		for i := range groups {
			groups[i].Name = cut(groups[i].Name, name)
		}
	}
}

// fitKeys returns the first keys that have room in so many bytes.
func fitKeys(keys []replay.DeniedKey, bytes int) []replay.DeniedKey {
	for i := range keys {
		if bytes -= size(keys[i]) + len(","); bytes < 0 {
			return keys[:i]
		}
	}
	return keys
}

// fitFiles replaces the files after the first by one entry.
func fitFiles(files []replay.File, name int) []replay.File {
	if len(files) > maxFiles {
		rest := replay.File{Name: fmt.Sprintf("and %d more files", len(files)-maxFiles)}
		for _, f := range files[maxFiles:] {
			rest.Lines += f.Lines
		}
		files = append(files[:maxFiles:maxFiles], rest)
	}
	for i := range files {
		files[i].Name = cut(files[i].Name, name)
	}
	return files
}

// cut shortens a name of more than most bytes, and adds how long it was.
func cut[T ~string](name T, most int) T {
	if 6*len(name) <= most { // JSON has at most six bytes for one
		return name
	}
	for i := 0; i < len(name); {
		_, n := utf8.DecodeRuneInString(string(name[i:]))
		if most -= size(replay.LogKey(name[i:i+n])) - len(`""`); most < 0 {
			return T(fmt.Sprintf("%s … (%d bytes)", string(name[:i]), len(name)))
		}
		i += n
	}
	return name
}

// size returns how many bytes v has as JSON.
func size(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: texts, numbers and times
	}
	return len(text)
}
