package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/cmd/headgate/internal/serve"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/redisstore"
)

const serveHelp = `Serve limits to every language and gateway: Envoy's rate limit protocol,
HTTP/JSON, forward auth for nginx, Caddy, HAProxy and Traefik, and a reverse proxy.
Without --config, serve one example rule from memory and print commands to try.

Each flag has an environment variable, such as HEADGATE_STORE for --store. Separate several
values in a variable with commas. A flag overrides its variable, a variable overrides the
rules file, and the file overrides the default.

With --envoy-env, or if the program is named ratelimit, serve also reads the environment
variables of envoyproxy/ratelimit, and uses its defaults.

By default, listeners accept connections from this machine only. SIGHUP reloads the files.
SIGTERM and SIGINT stop the server after the requests in progress.`

// fileFields are fields of the rules file that look like flags.
var fileFields = []string{
	"when-store-fails", "trust", "cors", "listen", "tls", "api", "rules", "overrides", "domains",
}

// serveFlags are the flags of serve as given.
type serveFlags struct {
	o         serve.Options
	proxies   []string
	envoyEnv  bool
	check     bool
	schema    bool
	console   string
	logLevel  string
	level     slog.Level
	logFormat string
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve [--config PATH]... [--store URL] [--proxy ADDR=URL]... | " +
			"serve --check PATH...",
		Short: "Serve limits over gRPC and HTTP, and as a proxy",
		Long:  serveHelp,
		Example: `  headgate serve
  headgate serve --config rules.yaml --store redis://localhost:6379
  headgate serve --check rules.yaml
  headgate serve --config rules.yaml --proxy :80=http://localhost:3000`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd, args)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		e, ok := errors.AsType[*pflag.NotExistError](err)
		if ok && slices.Contains(fileFields, e.GetSpecifiedName()) {
			return command.Usagef(cmd, "unknown flag \"--%s\"; it is a field of the file that "+
				"--config names", e.GetSpecifiedName())
		}
		return command.FlagError(cmd, err)
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.o.Files, "config", nil,
		"read rules from `PATH`, a file or a directory; may be repeated")
	flags.BoolVar(&f.check, "check", false,
		"check the files given as arguments or by --config, and exit (3: the files are invalid)")
	flags.BoolVar(&f.schema, "print-schema", false,
		"print the JSON Schema of the rules file and exit")
	flags.StringVar(&f.o.Store, "store", "",
		"keep state in the store at `URL`: memory:, redis://, rediss://, "+
			"redis+cluster://, redis+sentinel:// or redis+proxy://")
	flags.StringVar(&f.o.HTTP, "http", "",
		"serve HTTP on `ADDR` (off: disabled; default "+serve.DefaultHTTP+")")
	flags.StringVar(&f.o.GRPC, "grpc", "",
		"serve gRPC on `ADDR` (off: disabled; default "+serve.DefaultGRPC+")")
	flags.StringVar(&f.o.Debug, "debug", "",
		"serve counters and profiles on `ADDR` (off: disabled; default "+serve.DefaultDebug+")")
	flags.StringVar(&f.o.Metrics, "metrics", "",
		"serve Prometheus metrics on `ADDR` (default: /metrics of --http)")
	flags.StringVar(&f.console, "console", "on",
		"serve the operator's console at /console/ of --http: `STATE` is on, off, or keys "+
			"(without the paths and user agents of denied requests)")
	flags.StringVar(&f.o.Grafana, "grafana", "",
		"link the console to the Grafana dashboard at `URL`, with the same time range")
	flags.StringArrayVar(&f.proxies, "proxy", nil,
		"for `ADDR=URL`, listen on ADDR and forward allowed requests to URL; may be repeated")
	flags.BoolVar(&f.envoyEnv, "envoy-env", false,
		"read the environment variables of envoyproxy/ratelimit")
	flags.DurationVar(&f.o.Grace, "grace", serve.DefaultGrace,
		"on shutdown, wait at most `D` for requests in progress")
	flags.DurationVar(&f.o.DrainDelay, "drain-delay", 0,
		"on shutdown, serve for `D` while not ready, so that gateways notice")
	flags.IntVar(&f.o.Connections, "max-connections", serve.DefaultConnections,
		"accept at most `N` connections at a time on each listener")
	flags.StringVar(&f.logLevel, "log-level", "info",
		"log messages of at least `LEVEL`: debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "log as `FORMAT`: text or json")
	flags.Float64Var(&f.o.LogDecisions, "log-decisions", 0,
		"log a `FRACTION` of the decisions, from 0 to 1")
	flags.BoolVar(&f.o.LogDenials, "log-denials", false,
		"log once a minute what each rule denied, and its top denied key")
	return cmd
}

func (f *serveFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if err := fromEnvironment(cmd); err != nil {
		return err
	}
	switch {
	case f.schema:
		_, err := cmd.OutOrStdout().Write(config.Schema)
		return err
	case len(args) > 0 && !f.check:
		return command.Usagef(cmd, "unexpected argument %q; want flags only, such as --config %s",
			args[0], args[0])
	}
	f.o.Files = append(f.o.Files, args...)
	if err := f.complete(cmd); err != nil {
		return err
	}
	if f.check {
		return f.checkFiles(ctx, cmd)
	}
	if !f.envoyEnv {
		if names := environment.Ignored(os.LookupEnv); len(names) > 0 {
			f.o.Log.Warn("variables of envoyproxy/ratelimit are set and have no effect without "+
				"--envoy-env", "variables", strings.Join(names, ", "))
		}
	}
	if names := unknownVariables(cmd, f.o.Files); len(names) > 0 {
		f.o.Log.Warn("no flag and no file reads these variables",
			"variables", strings.Join(names, ", "))
	}
	f.o.Version = command.Version()
	reload := hangups()
	defer signal.Stop(reload)
	f.o.Reload = reload
	return serve.Run(ctx, f.o)
}

// checkDashboard refuses a URL with a password, which readers of the console would get. The error
// does not repeat it.
func checkDashboard(cmd *cobra.Command, text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return command.Usagef(cmd, "%s is not the URL of a page; want one that begins with "+
			"http:// or https://", nameOf("grafana", text))
	case u.User != nil:
		return command.Usagef(cmd, "%s has a user or a password, which every reader of the "+
			"console would get; want a URL without them", nameOf("grafana", text))
	}
	return nil
}

// hangups returns a channel that receives each SIGHUP, which ends the process before.
func hangups() chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}

// consoles are the values of --console.
var consoles = []string{"on", serve.Off, "keys"}

// complete checks the flags and makes the options of them.
func (f *serveFlags) complete(cmd *cobra.Command) error {
	for _, c := range []struct {
		flag  string
		value any
		good  bool
		want  string
	}{
		{"grace", f.o.Grace, f.o.Grace >= 0, "0s or more"},
		{"drain-delay", f.o.DrainDelay, f.o.DrainDelay >= 0, "0s or more"},
		{"max-connections", f.o.Connections, f.o.Connections >= 1, "1 or more"},
		{"log-decisions", f.o.LogDecisions, f.o.LogDecisions >= 0 && f.o.LogDecisions <= 1,
			"a fraction from 0 to 1"},
		{"console", f.console, slices.Contains(consoles, f.console), "on, off or keys"},
		{"log-format", f.logFormat, f.logFormat == "text" || f.logFormat == "json",
			"text or json"},
		{"log-level", f.logLevel, f.level.UnmarshalText([]byte(f.logLevel)) == nil,
			"debug, info, warn or error"},
	} {
		if text := fmt.Sprint(c.value); !c.good {
			return command.Usagef(cmd, "%s is %q; want %s", nameOf(c.flag, text), text, c.want)
		}
	}
	if err := checkDashboard(cmd, f.o.Grafana); err != nil {
		return err
	}
	f.o.NoConsole, f.o.ConsoleKeysOnly = f.console == serve.Off, f.console == "keys"
	if err := f.checkAddresses(cmd); err != nil {
		return err
	}
	for _, text := range f.proxies {
		address, target, ok := strings.Cut(text, "=")
		if !ok || address == "" || target == "" {
			return command.Usagef(cmd, "%s is %q; want ADDR=URL, such as :80=http://localhost:3000",
				nameOf("proxy", text), text)
		}
		f.o.Proxies = append(f.o.Proxies, serve.Proxy{Listen: address, Target: target})
	}
	if f.envoyEnv {
		e, err := environment.Read(os.LookupEnv)
		if err != nil {
			return command.Usagef(cmd, "%w", err)
		}
		f.o.Environment = e
	}
	secret, set := os.LookupEnv(keySecret)
	if set && secret == "" { // as the secret of a container that is not filled in
		return command.Usagef(cmd, "%s is empty; want at least %d random bytes, or no variable",
			keySecret, redisstore.MinKeySecret)
	}
	f.o.KeySecret = secret
	f.o.Out = cmd.OutOrStdout()
	f.setLog(cmd)
	return nil
}

// checkAddresses checks the addresses of listeners, and names the flag or variable of a wrong one.
func (f *serveFlags) checkAddresses(cmd *cobra.Command) error {
	for _, a := range []struct{ flag, value string }{
		{"http", f.o.HTTP}, {"grpc", f.o.GRPC}, {"debug", f.o.Debug}, {"metrics", f.o.Metrics},
	} {
		_, _, err := net.SplitHostPort(a.value)
		if err == nil || a.value == "" || a.value == serve.Off ||
			strings.HasPrefix(a.value, "unix:") {
			continue
		}
		name := nameOf(a.flag, a.value)
		if _, err := strconv.ParseUint(a.value, 10, 16); err == nil {
			return command.Usagef(cmd, "%s is %q; want HOST:PORT, such as 127.0.0.1:%[2]s, "+
				"or :%[2]s for all addresses", name, a.value)
		}
		return command.Usagef(cmd, "%s is %q; want HOST:PORT, :PORT, unix:PATH or off",
			name, a.value)
	}
	return nil
}

// setLog makes the log, by the environment if the flags are not given.
func (f *serveFlags) setLog(cmd *cobra.Command) {
	level, json := f.level, f.logFormat == "json"
	if f.o.Environment != nil {
		if !cmd.Flags().Changed("log-level") {
			level = f.o.Environment.LogLevel
		}
		if !cmd.Flags().Changed("log-format") {
			json = f.o.Environment.LogJSON
		}
	}
	f.o.Log = newLog(cmd.ErrOrStderr(), level, json)
}

// newLog makes a log. In JSON, durations are in seconds, and headgate.Never is left out.
func newLog(w io.Writer, level slog.Level, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		switch isNever := a.Value.Kind() == slog.KindDuration &&
			a.Value.Duration() == headgate.Never; {
		case isNever && json:
			return slog.Attr{}
		case isNever:
			a.Value = slog.StringValue("never")
		case json && a.Value.Kind() == slog.KindDuration:
			a.Value = slog.Float64Value(a.Value.Duration().Seconds())
		}
		return a
	}
	if json {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// checkFiles prints what the files say, or fails with all faults.
func (f *serveFlags) checkFiles(ctx context.Context, cmd *cobra.Command) error {
	if len(f.o.Files) == 0 && f.o.Environment == nil {
		return command.Usagef(cmd, "--check has no files; name them after it")
	}
	var text string
	var err error
	left := await.Do(ctx, func() { text, err = serve.Check(f.o) }) // a file may hang
	switch {
	case left:
		return ctx.Err()
	case err != nil:
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(command.Printable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	_, err = io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}
