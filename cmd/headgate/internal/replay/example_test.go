package replay_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// What would 60 requests a minute have done to a recorded day?
func Example() {
	file, err := os.Open("../../../../examples/shop-day.log")
	if err != nil {
		log.Fatal(err)
	}
	report, err := replay.Run(context.Background(), replay.Config{
		Limits: []headgate.Limit{headgate.PerMinute(60).Burst(60)},
		Reading: replay.Reading{
			By: replay.ByIP, Reorder: replay.DefaultReorder, Top: replay.DefaultTop,
		},
	}, replay.Log{Name: file.Name(), Reader: file})
	if err != nil {
		log.Fatal(err)
	}
	file.Close()
	result := report.Limits[0]
	fmt.Printf("%s would have denied %d of %d requests, of %d clients\n", result.Limit, result.Denied, result.Requests, result.DeniedKeys)
	for _, top := range result.Top {
		fmt.Printf("%s: %.0f%%\n", top.Key, 100*top.Share)
	}
	// Output:
	// 60/m would have denied 506 of 997 requests, of 3 clients
	// 198.19.231.174: 59%
	// 198.18.22.49: 25%
	// 198.18.127.148: 16%
}
