package environment

import "testing"

// FuzzRead: no value of a variable panics, and an error names its variable.
func FuzzRead(f *testing.F) {
	for _, name := range []string{
		"PORT", "HOST", "GRPC_MAX_CONNECTION_AGE", "LOG_LEVEL", "EXTRA_TAGS", "REDIS_URL", "REDIS_TYPE",
		"REDIS_AUTH", "REDIS_PERSECOND", "REDIS_TLS", "CACHE_KEY_PREFIX", "NEAR_LIMIT_RATIO",
		"CONFIG_GRPC_XDS_NODE_ID", "CONFIG_TYPE", "LOCAL_CACHE_SIZE_IN_BYTES", "PROMETHEUS_PATH",
	} {
		for _, value := range []string{
			"", "\xff", "\x00", "true", "-1", "9999999999999999999", "a:b,c", "1e9999h", "NaN", "redis://u:p@h:1/x",
			"a,b,c", "SENTINEL", "CLUSTER", "unix", "[::1]:80", "%zz",
		} {
			f.Add(name, value)
		}
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		s, err := Read(func(asked string) (string, bool) {
			switch asked {
			case name:
				return value, true
			case "CONFIG_TYPE":
				return "GRPC_XDS_SOTW", true
			case "REDIS_PERSECOND", "USE_PROMETHEUS", "REDIS_TLS":
				return "true", true
			}
			return "", false
		})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		client, err := s.Redis.Client()
		if err == nil {
			_ = client.Close()
		}
	})
}
