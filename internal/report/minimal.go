package report

import (
	"encoding/json"
	"io"
)

// Write writes the page of d.
func Write(w io.Writer, d *Data) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "<!doctype html>\n<script type=\"application/json\" id=\"data\">"+string(text)+"</script>\n")
	return err
}
