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
	const wantURL = "redis://[user:password@]host[:port][/db], rediss:// for TLS, redis+cluster://host:port,host:port, redis+sentinel://host:port,host:port/master-name or redis+proxy://host:port"
	const escaped = "; in a password write %25 for %, %20 for a space, %2F for /, %23 for #, %3F for ?, %26 for &"
	const known = "prefix, queue, or one of go-redis, such as dial_timeout, read_timeout or pool_size"
	for url, want := range map[string]string{
		"redis://h?pool_size=-1":                        `pool_size in the store URL is "-1"; want 0 to 1048576`,
		"redis://h?pool_size=2147483647":                `pool_size in the store URL is "2147483647"; want 0 to 1048576`,
		"redis+sentinel://h/m?pool_size=-1":             `pool_size in the store URL is "-1"; want 0 to 1048576`,
		"redis+cluster://127.0.0.1:1?pool_size=-1":      `pool_size in the store URL is "-1"; want 0 to 1048576`,
		"redis://h?max_retries=-2":                      `max_retries in the store URL is "-2"; want -1 to 1048576`,
		"redis://h?read_timeout=2147483647":             `read_timeout in the store URL is "2147483647"; want 0 to 1048576`,
		"redis://h?read_timeout=-1":                     `read_timeout in the store URL is "-1"; want 0 to 1048576`,
		"redis://h?read_timeout=-1s":                    `read_timeout in the store URL is "-1s"; want 0 to 1048576`,
		"redis://h?pool_timeout=-2ns":                   `pool_timeout in the store URL is "-2ns"; want 0 to 1048576`,
		"redis+cluster://a:1?write_timeout=-0.5s":       `write_timeout in the store URL is "-0.5s"; want 0 to 1048576`,
		"redis+sentinel://h/m?dial_timeout=-1h":         `dial_timeout in the store URL is "-1h"; want 0 to 1048576`,
		"redis+cluster://a:1?pool_timeout=soon":         `store URL is invalid: invalid pool_timeout duration: time: invalid duration "soon"; want ` + wantURL,
		"redis://h?pool_fifo=perhaps":                   `store URL is invalid: invalid pool_fifo boolean: expected true/false/1/0 or an empty string, got "perhaps"; want ` + wantURL,
		"redis+sentinel://h/m?route_by_latency=1":       `store URL is invalid: to route commands by latency, use NewFailoverClusterClient; want ` + wantURL,
		"redis://:hush@h?queue=many":                    `queue in the store URL is "many"; want how many callers may wait, such as 8192`,
		"redis://h?queue=-1":                            `queue in the store URL is "-1"; want how many callers may wait, such as 8192`,
		"redis://h?quue=3":                              `parameter "quue" of the store URL is unknown; want ` + known,
		"redis+cluster://a:1?no_such=1&read_only=false": `parameter "no_such" of the store URL is unknown; want ` + known,
		"redis+sentinel://h:1/m?password=hush&s3cret":   "store URL is malformed; want " + wantURL + escaped,
		"redis://h:67999":                               `port of the store is "67999"; want 1 to 65535`,
		"redis+cluster://a:1,b":                         "store URL is invalid: unable to parse addr param: b; want " + wantURL,
		"redis+cluster://a:1,,b:2":                      "store URL is invalid: unable to parse addr param: ; want " + wantURL,
		"redis://a:1,b:2":                               "store URL is of several hosts; want one host; several are for redis+cluster:// and redis+sentinel://",
		"redis+cluster://a:1/3":                         "store URL is of a Cluster with a database; want nothing after the hosts, because a Cluster has only one database",
		"redis+sentinel://a:1":                          "store URL is without a master; want redis+sentinel://host:port/master-name",
		"redis://h/first":                               `store URL is invalid: invalid database number: "first"; want ` + wantURL,
		"redis://:p%ss@localhost:6399":                  "store URL is malformed; want " + wantURL + escaped,
		"redis://:p ss@localhost:6399":                  "store URL is malformed; want " + wantURL + escaped,
		"redis://local host":                            "store URL is malformed; want " + wantURL,
		"http://localhost":                              `store URL is of scheme "http"; want ` + wantURL,
		"localhost:6379":                                "store URL is without a scheme; want " + wantURL,
		"user:secret":                                   "store URL is without a scheme; want " + wantURL,
		"user:secret@localhost:6379":                    "store URL is without a scheme; want " + wantURL,
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
		"Redis://h", "RedisS+Cluster://a:1", "redis+sentinel://a:1/m?password=12345678", "redis://h?client_name=-5", "redis://h?client_name=-5s",
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		_ = s.Close()
	}
}
