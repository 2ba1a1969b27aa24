package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// writeReport writes the comparison with budgets, if there are any, and all tables, as Markdown.
func writeReport(w io.Writer, r *Results, setting string, bs []Budget) {
	fmt.Fprintf(w, "# Results\n\nWritten by `make bench`; do not edit. [README.md](README.md) "+
		"says how this is measured.\nNumbers are medians over the rounds, with the extremes in "+
		"parentheses. A ratio is taken within each round.\n\n%s\n%s", summary(r), setting)
	if met, missed, rows := compare(r, bs); len(rows) > 0 {
		fmt.Fprintf(w, "\n## Budgets: %d met, %d missed\n\n| what | budget | measured | |\n"+
			"|---|---|---|---|\n%s\n", met, missed, strings.Join(rows, "\n"))
	}
	for _, p := range parts {
		writeTable(w, r, p)
	}
}

// compare compares r with those budgets that were measured.
func compare(r *Results, bs []Budget) (met, missed int, rows []string) {
	for _, b := range bs {
		s, _ := b.measure(r)
		switch {
		case !s.OK:
			continue
		case b.met(s):
			met++
		default:
			missed++
		}
		rows = append(rows, b.row(r))
	}
	return met, missed, rows
}

// setting describes this run: when, where and how.
func setting(ctx context.Context, args []string, rounds int) string {
	commit := output(ctx, "git", "rev-parse", "--short", "HEAD")
	others := []string{"status", "--porcelain", "--", ":/", ":(exclude,top)bench/RESULTS.md"}
	if output(ctx, "git", others...) != "" {
		commit += ", with changes"
	}
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("- Date: %s\n- Commit: %s\n- Command: `go run . %s` in bench/\n"+
		"- Rounds: %d\n- Machine: %s, %d cores, %s/%s; load average before: %.14s\n- %s; %s%s\n",
		time.Now().UTC().Format("January 2, 2006, 15:04 UTC"), commit, strings.Join(args, " "),
		rounds, processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, load,
		runtime.Version(), redisVersion(ctx), peerVersions())
}

// peerVersions lists the modules that this program compares with, each after a semicolon.
func peerVersions() (list string) {
	build, _ := debug.ReadBuildInfo()
	for _, m := range build.Deps {
		for _, name := range []string{
			"redis_rate/", "/rueidis", "ulule/limiter/", "/throttled/", "go-limiter", "x/time",
			"httprate", "go-redis/v9",
		} {
			if strings.Contains(m.Path, name) {
				list += "; " + m.Path + " " + m.Version
			}
		}
	}
	return list
}

// redisVersion asks a server of its own, because its program may have any name.
func redisVersion(ctx context.Context) string {
	version := "no Redis"
	_ = withRedis(ctx, func(s redisServer) error {
		_, rest, _ := strings.Cut(s.admin.Info(ctx, "server").Val(), "redis_version:")
		version, _, _ = strings.Cut(rest, "\r")
		version = "Redis " + version
		return nil
	})
	return version
}

// output is the first line that a command prints, or nothing if it fails.
func output(ctx context.Context, name string, args ...string) string {
	out, _ := exec.CommandContext(ctx, name, args...).Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(info), "model name\t: ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}
