// Preloaded into a server, moves its clock: Redis asks these two for the time of day.
// The time that only passes (CLOCK_MONOTONIC), by which it waits, stays as it is.
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
	static long long ahead;
	static int known;
	struct timespec t;
	if (!known) {
		const char *text = getenv("REDISTEST_AHEAD");
		ahead = text ? atoll(text) : 0;
		known = 1;
	}
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000 + ahead;
}

int gettimeofday(struct timeval *t, void *zone) {
	long long micros = now();
	(void)zone;
	t->tv_sec = micros / 1000000;
	t->tv_usec = micros % 1000000;
	return 0;
}

time_t time(time_t *t) {
	time_t seconds = now() / 1000000;
	if (t)
		*t = seconds;
	return seconds;
}
