// Command headgate serves rate limits, tests them on access logs, decides requests from scripts,
// and limits the rate of pipes and commands. See headgate --help.
package main

import (
	_ "time/tzdata" // calendars have the same zones on systems that have none

	"github.com/headgate/headgate/cmd/headgate/internal/cli"
)

func main() { cli.Main() }
