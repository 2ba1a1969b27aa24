package redisstore

import (
	"embed"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
)

// files are the parts of the scripts: the algorithms, whose Go twins are in internal/algorithm, the
// prelude before them, and what calls them after.
//
//go:embed *.lua
var files embed.FS

// parts names the files of each algorithm, and at 0 those of the slow path.
var parts = [...][]string{
	0:                               {"booking", "group"},
	headgate.AlgorithmTokenBucket:   {"token_bucket"},
	headgate.AlgorithmStepped:       {"stepped_token_bucket"},
	headgate.AlgorithmFixedWindow:   {"fixed_window"},
	headgate.AlgorithmSlidingWindow: {"sliding_window"},
	headgate.AlgorithmSlidingLog:    {"sliding_log"},
}

// algorithms is a set of algorithms: bit a stands for algorithm a, and bit 0 for the slow path.
type algorithms uint8

const slowPath algorithms = 1

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

func source(set algorithms) (text string) {
	names := []string{"prelude"}
	for a, part := range parts {
		if set&(1<<a) != 0 {
			names = append(names, part...)
		}
	}
	for _, name := range append(names, "take", "write") {
		text += file(name)
	}
	return text
}

func file(name string) string {
	body, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(body)
}
