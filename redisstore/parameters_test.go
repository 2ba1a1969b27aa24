package redisstore_test

import (
	"errors"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// Open rejects what go-redis would panic at or ignore, in one line that names it. Once, a space or
// a percent sign in a password was answered with the right scheme as the error.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	const wantURL = "redis://[user:password@]host[:port][/db], rediss:// for TLS, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master-name"
	const escaped = "; in a password write %25 for %, %20 for a space, %2F for /, %23 for #, %3F for ?"
	const conns, timeout = "0 to 65535", "a duration such as 500ms, or a number of seconds, at most a year; 0 for none"
	for url, want := range map[string]string{ //nolint:gosec // nobody's password
		"redis://h?pool_size=-1":                        `pool_size in the store URL is "-1"; want ` + conns + ", or 0 for the default",
		"redis://h?pool_size=99999999999":               `pool_size in the store URL is "99999999999"; want ` + conns + ", or 0 for the default",
		"redis+sentinel://h/m?pool_size=-1":             `pool_size in the store URL is "-1"; want ` + conns + ", or 0 for the default",
		"redis+cluster://127.0.0.1:1?pool_size=-1":      `pool_size in the store URL is "-1"; want ` + conns + ", or 0 for the default",
		"redis://h?pool_size=":                          `pool_size in the store URL is ""; want ` + conns + ", or 0 for the default",
		"redis://h?min_idle_conns=-1":                   `min_idle_conns in the store URL is "-1"; want ` + conns,
		"redis://h?max_active_conns=-2":                 `max_active_conns in the store URL is "-2"; want ` + conns + ", or 0 for no limit",
		"redis://h?protocol=9":                          `protocol in the store URL is "9"; want 2 to 3`,
		"redis://h?max_retries=3":                       `max_retries in the store URL is "3"; want -1 to 0: a request that may have been charged is not repeated`,
		"redis://h?dial_timeout=-1s":                    `dial_timeout in the store URL is "-1s"; want ` + timeout,
		"redis://h?read_timeout=99999999999":            `read_timeout in the store URL is "99999999999"; want ` + timeout,
		"redis+cluster://a:1?pool_timeout=soon":         `pool_timeout in the store URL is "soon"; want ` + timeout,
		"redis://h?pool_fifo=perhaps":                   `pool_fifo in the store URL is "perhaps"; want true or false`,
		"redis://:hush@h?queue=many":                    `queue in the store URL is "many"; want how many callers may wait, such as 8192`,
		"redis://h?queue=-1":                            `queue in the store URL is "-1"; want how many callers may wait, such as 8192`,
		"redis://h?queue=5&queue=6":                     "queue in the store URL is given 2 times; want one value",
		"redis+sentinel://h:1/m?password=hush&s3cret":   `store URL is malformed; want query parameters of go-redis, and in a password %26 for &`,
		"redis://h:67999":                               `port of the store is "67999"; want 1 to 65535`,
		"redis://h:0":                                   `port of the store is "0"; want 1 to 65535`,
		"redis+cluster://a:1,b:70000":                   `port of the store is "70000"; want 1 to 65535`,
		"redis+cluster://a:1,b":                         "host 2 of the store URL is without a port; want host:port",
		"redis+cluster://a:1,,b:2":                      "host 2 of the store URL is empty; want host:port",
		"redis+sentinel://,b:2/m":                       "host 1 of the store URL is empty; want host:port",
		"redis://a:1,b:2":                               `store URL is malformed; want one host; several are for redis+cluster:// and redis+sentinel://`,
		"redis+cluster://a:1/3":                         `store URL is malformed; want no database after the hosts: a Cluster has only one; in a password write %25 for %, %20 for a space, %2F for /, %23 for #, %3F for ?`,
		"redis+cluster://a:1?no_such=1&read_only=false": `store URL is malformed; want query parameters of go-redis; "no_such" is unknown`,
		"redis://:p%ss@localhost:6399":                  "store URL is malformed; want " + wantURL + escaped,
		"redis://:p ss@localhost:6399":                  "store URL is malformed; want " + wantURL + escaped,
		"http://localhost":                              `store URL is of scheme "http"; want ` + wantURL,
	} {
		_, err := redisstore.Open(url)
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || err.Error() != "headgate: "+want {
			t.Errorf("%s:\n got %v\nwant headgate: %s", url, err, want)
		}
	}
}

// Open accepts parameters in their ranges.
func TestOpenTakesParameters(t *testing.T) {
	for _, url := range []string{
		"redis://h?pool_size=0&min_idle_conns=0&max_active_conns=65535&protocol=2&max_retries=-1&dial_timeout=0&read_timeout=2&write_timeout=1h&pool_fifo=true&pipeline_pool_size=-1",
		"redis+cluster://a:1,b:2/?max_redirects=-1&dialer_retries=1&dialer_retry_timeout=5ms&read_only=0", "redis+cluster://a:1?addr=b:2&addr=c:3",
		"redis+sentinel://a:1,b:2/m?password=p%40ss&username=u&db=3", "rediss://h?skip_verify=1", "redis://[::1]", "redis://[::1]:65535/2",
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		_ = s.Close()
	}
}
