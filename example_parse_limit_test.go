package headgate_test

import (
	"fmt"

	"github.com/headgate/headgate"
)

// How do I read a limit from a configuration file?
func ExampleParseLimit() {
	for _, text := range []string{"100/m burst 20", "1.5/s", "login=5/15m sliding-log",
		"10/parsec"} {
		limit, err := headgate.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limit, "|", limit.Algorithm(), limit.Capacity(), limit.Period())
	}
	// Output:
	// 100/m burst 20 | token-bucket 20 1m0s
	// 3/2s burst 2 | token-bucket 2 2s
	// login=5/15m sliding-log | sliding-log 5 15m0s
	// headgate: limit "10/parsec": period is "parsec"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w), or month or year
}
