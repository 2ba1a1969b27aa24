package ratelimiter

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/headgate/headgate/internal/demo"
	"github.com/headgate/headgate/redisstore"
)

// RunDemoServer serves a page that shows limits at work, with their state in Redis, until the
// program is interrupted. POST /test and POST /config respond as in the documentation of Redis. It
// reads the flags -port (default 8080), -redis-host (localhost) and -redis-port (6379) with package
// flag.
//
// It serves this machine only. If Redis is unavailable or the port is in use, it prints an error
// and exits with 1.
func RunDemoServer() {
	port := flag.Int("port", 8080, "serve on this port of localhost (0: any free port)")
	redisHost := flag.String("redis-host", "localhost", "the host of Redis")
	redisPort := flag.Int("redis-port", 6379, "the port of Redis")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serveDemo(ctx, *port, *redisHost, *redisPort); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func serveDemo(ctx context.Context, port int, redisHost string, redisPort int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("port is %d; want 0 to 65535", port)
	}
	if redisPort < 1 || redisPort > 65535 {
		return fmt.Errorf("redis-port is %d; want 1 to 65535", redisPort)
	}
	logging.Disable() // its errors also come as errors
	addr := net.JoinHostPort(redisHost, strconv.Itoa(redisPort))
	store, err := redisstore.Open("redis://" + addr)
	if err != nil {
		return err
	}
	defer store.Close()
	now := func(ctx context.Context) (time.Time, error) { return store.Client().Time(ctx).Result() }
	page, err := demo.New(store, demo.Options{Store: "Redis at " + addr, Now: now})
	if err != nil {
		return err
	}
	if err := page.Ping(ctx, 5*time.Second); err != nil {
		return fmt.Errorf("cannot reach Redis at %s: %w", addr, err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	fmt.Printf("The demo is at http://%s (Redis at %s; Ctrl-C ends it)\n", demo.Address(l), addr)
	return page.Serve(ctx, l)
}
