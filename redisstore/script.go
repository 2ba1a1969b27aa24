package redisstore

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
)

// files are the parts of the scripts: the prelude, the algorithms, whose Go twins are in
// internal/algorithm, and what calls them.
//
//go:embed *.lua
var files embed.FS

// parts names the file of each algorithm. Its function has the same name, without underscores.
var parts = [...]string{
	headgate.AlgorithmTokenBucket:        "token_bucket",
	headgate.AlgorithmSteppedTokenBucket: "stepped_token_bucket",
	headgate.AlgorithmFixedWindow:        "fixed_window",
	headgate.AlgorithmSlidingWindow:      "sliding_window",
	headgate.AlgorithmSlidingLog:         "sliding_log",
	headgate.AlgorithmCalendarWindow:     "calendar_window",
}

// algorithms is a set of algorithms: bit a stands for algorithm a, bit 0 for the slow path, and the
// highest bit for a lone request.
type algorithms uint8

const (
	slowPath algorithms = 1
	lone     algorithms = 1 << 7
)

// scripts holds a script for each set that was used. One with all of them would do as well,
// but Redis runs a script from its first line each time, and to define an algorithm that is
// not needed costs time.
var scripts sync.Map // algorithms -> redisscript.Script

func scriptFor(set algorithms) redisscript.Script {
	if known, ok := scripts.Load(set); ok {
		s, _ := known.(redisscript.Script)
		return s
	}
	s := redisscript.New(source(set))
	scripts.Store(set, s)
	return s
}

func source(set algorithms) string {
	text, decide := file("prelude"), ""
	for a, part := range parts {
		if a == 0 || set&(1<<a) == 0 {
			continue
		}
		text += file(part)
		function := strings.ReplaceAll(part, "_", "")
		if set&lone != 0 {
			return text + "local decide = " + function + "\n" + file("lone")
		}
		decide += fmt.Sprintf("[%d] = %s, ", a, function)
	}
	text += "local algorithms = {" + decide + "}\n" + file("batch")
	if set&slowPath != 0 {
		text += file("booking") + file("slow_path")
	}
	return text + file("take") + file("write")
}

func file(name string) string {
	body, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(body)
}
