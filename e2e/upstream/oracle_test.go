package upstream

import (
	"context"
	"fmt"
	"strings"

	pbcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/limiter"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"

	"github.com/headgate/headgate/service/internal/envoy"
)

// oracle is upstream with one set of files loaded.
type oracle struct{ config config.RateLimitConfig }

var (
	manager = stats.NewStatManager(gostats.NewStore(gostats.NewNullSink(), false), settings.Settings{})
	keys    = limiter.NewCacheKeyGenerator("")
)

// file is a file of configuration.
type file struct{ name, text string }

// loadUpstream loads files as upstream does. The error is its message.
func loadUpstream(files []file, merge bool) (o oracle, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("%v", failed)
		}
	}()
	var all []config.RateLimitConfigToLoad
	for _, f := range files {
		all = append(all, config.RateLimitConfigToLoad{Name: f.name, ConfigYaml: config.ConfigFileContentToYaml(f.name, f.text)})
	}
	return oracle{config.NewRateLimitConfigImpl(all, manager, merge)}, nil
}

// loadOurs loads files as Headgate does.
func loadOurs(files []file, merge bool) (*envoy.Config, []error) {
	var domains []*envoy.Domain
	for _, f := range files {
		d, errs := envoy.ParseFile(f.name, []byte(f.text))
		if errs != nil {
			return nil, errs
		}
		domains = append(domains, d)
	}
	c, err := envoy.NewConfig(domains, merge)
	if err != nil {
		var errs []error
		for line := range strings.SplitSeq(err.Error(), "\n") {
			errs = append(errs, fmt.Errorf("%s", line))
		}
		return nil, errs
	}
	return c, nil
}

// found is what applies to a descriptor, in the same words for both.
func (o oracle) found(domain string, d *envoy.Descriptor) string {
	pb := &pbcommon.RateLimitDescriptor{}
	for _, e := range d.Entries {
		pb.Entries = append(pb.Entries, &pbcommon.RateLimitDescriptor_Entry{Key: e.Key, Value: e.Value})
	}
	l := o.config.GetLimit(context.Background(), domain, pb)
	if l == nil {
		return "no limit"
	}
	key := "none"
	if !l.Unlimited {
		key = strings.TrimSuffix(keys.GenerateCacheKey(domain, pb, l, 0).Key, "0")
	}
	return describe(l.Limit.GetRequestsPerUnit(), int32(l.Limit.GetUnit()), l.Name, l.Unlimited, l.ShadowMode,
		l.QuotaMode, l.Replaces, l.Stats.GetKey(), key)
}

func found(c *envoy.Config, domain string, d *envoy.Descriptor) string {
	f, ok := c.Find(domain, d)
	if !ok {
		return "no limit"
	}
	key := "none"
	if !f.Unlimited {
		key = glue(f.Key)
	}
	return describe(f.Limit.RequestsPerUnit, int32(f.Limit.Unit), f.Limit.Name, f.Unlimited, f.Shadow,
		f.Quota, f.Replaces, domain+"."+f.Path, key)
}

func describe(n uint32, unit int32, name string, unlimited, shadow, quota bool, replaces []string, path, key string) string {
	return fmt.Sprintf("%d per %d, name %q, unlimited %t, shadow %t, quota %t, replaces %q, path %q, key %q",
		n, unit, name, unlimited, shadow, quota, replaces, path, key)
}

// glue turns the key of one of our counters into upstream's, in which different descriptors may
// share a key.
func glue(key string) string {
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '|', '=':
			b.WriteByte('_')
		case '\\':
			i++
			b.WriteByte(key[i])
		default:
			b.WriteByte(key[i])
		}
	}
	return b.String() + "_"
}

// agree reports how the verdicts on one set of files differ, or "". A message is compared without
// the line that Headgate adds. What upstream's YAML library refuses may be refused in other words.
func agree(theirs error, ours []error) string {
	switch {
	case theirs == nil && len(ours) == 0:
		return ""
	case theirs == nil:
		return fmt.Sprintf("upstream accepts it; we say %q", ours)
	}
	_, want, _ := strings.Cut(theirs.Error(), ": ")
	// Later versions of upstream than the module's know * in the middle.
	if before, key, ok := strings.Cut(want, "(ending with '*')"); ok {
		if strings.Contains(key, "*") {
			return ""
		}
		want = before + "(containing '*')" + key
	}
	if len(ours) == 0 {
		return fmt.Sprintf("we accept it; upstream says %q", theirs)
	}
	if strings.HasPrefix(want, "error loading config file: yaml: ") {
		return ""
	}
	for _, err := range ours {
		if _, got, _ := strings.Cut(err.Error(), ": "); got == want {
			return ""
		}
	}
	return fmt.Sprintf("upstream says %q; we say %q", want, ours)
}
