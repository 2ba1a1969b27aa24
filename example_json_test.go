package headgate_test

import (
	"encoding/json"
	"fmt"

	"github.com/headgate/headgate"
)

// How do I read a limit from JSON? It is a text there, as in every encoding that supports texts.
func ExampleLimit_UnmarshalText() {
	var config struct {
		Login headgate.Limit `json:"login"`
	}
	err := json.Unmarshal([]byte(`{"login": "5/15m sliding-log"}`), &config)
	fmt.Println(config.Login.Capacity(), config.Login.Period(), err)
	// Output: 5 15m0s <nil>
}
