package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// shown is what a page shows at most.
type shown struct {
	keys  int // for each limit
	bars  int
	bytes int // of a key or another name
	top   int // of lists of keys in the reports
}

// sizes are tried in this order.
var sizes = []shown{
	{1000, 2000, 4096, 100}, {1000, 2000, 1024, 20}, {500, 2000, 1024, 20}, {500, 1000, 512, 10},
	{200, 1000, 512, 10}, {200, 500, 256, 10}, {100, 500, 256, 10}, {100, 250, 256, 10},
	{100, 120, 128, 5}, {50, 120, 128, 5}, {50, 60, 64, 3}, {20, 30, 64, 3},
}

// Fit returns d with so much left out that its page is below 1 MB: first keys that were denied
// least, then bars and long names. Counts stay exact. It does not change d.
func (d *Data) Fit() (*Data, error) {
	bytes := 0
	for _, s := range sizes {
		fitted := *d
		if len(d.Command) > maxCommand {
			fitted.Command = strings.ToValidUTF8(d.Command[:maxCommand], "") + " …"
		}
		fitted.Size, fitted.Replay = fitSize(d.Size, s), fitReplay(d.Replay, s)
		text, err := json.Marshal(&fitted)
		if err != nil {
			return nil, err
		}
		if bytes = len(text); bytes <= MaxDataBytes {
			return &fitted, nil
		}
	}
	return nil, fmt.Errorf("the report would have %d KB of data; the maximum is %d KB: "+
		"use fewer limits or files", bytes/1000, MaxDataBytes/1000)
}

const maxCommand = 4000 // bytes

// fitSize copies what it changes of r.
func fitSize(r *replay.SizeReport, s shown) *replay.SizeReport {
	fitted := *r
	fitted.Files = fitFiles(r.Files, 5*s.top)
	fitted.Proposals = slices.Clone(r.Proposals)
	for i := range fitted.Proposals {
		fitResult(&fitted.Proposals[i].Result, s)
	}
	if r.StandOut != nil {
		aside := *r.StandOut
		fitResult(&aside.Rest, s)
		aside.Keys = slices.Clone(aside.Keys)
		for i := range aside.Keys {
			cut(&aside.Keys[i].Key, s.bytes)
		}
		fitted.StandOut = &aside
	}
	return &fitted
}

func fitReplay(r *replay.Report, s shown) *replay.Report {
	fitted := *r
	fitted.Files = fitFiles(r.Files, 5*s.top)
	fitted.Limits = slices.Clone(r.Limits)
	for i := range fitted.Limits {
		fitResult(&fitted.Limits[i], s)
	}
	fitted.Detail = fitDetail(r.Detail, s)
	return &fitted
}

func fitDetail(d *replay.Detail, s shown) *replay.Detail {
	fitted := d.Narrowed(s.keys, s.bars)
	for i := range fitted.Keys {
		for j := range fitted.Keys[i] {
			cut(&fitted.Keys[i][j].Key, s.bytes)
		}
		for j := range fitted.KeyTimelines[i] {
			cut(&fitted.KeyTimelines[i][j].Key, s.bytes)
		}
	}
	for _, groups := range [][]replay.Group{fitted.Paths, fitted.Methods, fitted.Statuses} {
		for i := range groups {
			cut(&groups[i].Name, s.bytes)
		}
	}
	return fitted
}

func fitResult(r *replay.Result, s shown) {
	r.Top = slices.Clone(r.Top[:min(s.top, len(r.Top))])
	for i := range r.Top {
		cut(&r.Top[i].Key, s.bytes)
	}
}

// fitFiles replaces the files after the first by one entry.
func fitFiles(files []replay.File, most int) []replay.File {
	if len(files) <= most {
		return files
	}
	rest := replay.File{Name: fmt.Sprintf("and %d more files", len(files)-most)}
	for _, f := range files[most:] {
		rest.Lines += f.Lines
	}
	return append(slices.Clone(files[:most]), rest)
}

// cut makes a name at most so many bytes long, and then says how long it was.
func cut(name *replay.LogKey, most int) {
	n := most
	if len(*name) <= n+len(" … (1048576 bytes)") {
		return
	}
	for n > most-utf8.UTFMax && !utf8.RuneStart((*name)[n]) {
		n--
	}
	*name = replay.LogKey(fmt.Sprintf("%s … (%d bytes)", (*name)[:n], len(*name)))
}
