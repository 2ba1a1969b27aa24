// Command logs has the verbs of headgate that read access logs: replay and size. It compiles in a
// third of the time.
package main

import (
	_ "time/tzdata" // calendars have the same zones on systems that have none

	"github.com/headgate/headgate/cmd/headgate/internal/logs"
)

func main() { logs.Main() }
