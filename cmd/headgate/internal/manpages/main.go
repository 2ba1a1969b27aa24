// Command manpages writes the manual pages of headgate into a directory, for packages.
package main

import (
	"log"
	"os"

	"github.com/headgate/headgate/cmd/headgate/internal/cli"
	"github.com/spf13/cobra/doc"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: manpages DIR")
	}
	if err := os.MkdirAll(os.Args[1], 0o750); err != nil { //nolint:gosec,nolintlint // as asked
		log.Fatal(err)
	}
	header := &doc.GenManHeader{Title: "HEADGATE", Section: "1", Manual: "Headgate"}
	if err := doc.GenManTree(cli.Command(), header, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
