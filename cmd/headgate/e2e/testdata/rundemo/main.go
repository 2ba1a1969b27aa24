// Command rundemo is the program that the documentation of Redis shows, with the
// drop-in in the place of the original.
package main

import "github.com/headgate/headgate/ratelimiter"

func main() { ratelimiter.RunDemoServer() }
