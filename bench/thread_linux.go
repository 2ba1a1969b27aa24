package main

import (
	"runtime"
	"syscall"
	"time"
)

// ownThread gives the goroutine a thread that sleeps to the microsecond. The thread ends with the
// goroutine. The timers of the runtime are as coarse as a millisecond when nothing else runs.
func ownThread() {
	runtime.LockOSThread()
	// By default the kernel may wake a thread 50 us late.
	_, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, 1, 0)
	if failed != 0 {
		panic(failed) // cannot happen: every process may set it
	}
}

// sleepUntil returns at t, on a thread of its own. A signal may end one nanosleep early.
func sleepUntil(t time.Time) {
	for wait := time.Until(t); wait > 0; wait = time.Until(t) {
		spec := syscall.NsecToTimespec(int64(wait))
		_ = syscall.Nanosleep(&spec, nil)
	}
}

// threadCPU is the processor time that this thread has used.
func threadCPU() time.Duration { return cpuOf(syscall.RUSAGE_THREAD) }
