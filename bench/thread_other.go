//go:build !linux

package main

import (
	"runtime"
	"time"
)

// Other systems measure less precisely: sleeps may be a millisecond late, and the CPU time of the
// client includes that of the thread that makes the calls.

func ownThread() { runtime.LockOSThread() }

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }

func threadCPU() time.Duration { return 0 }
