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
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
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
		root := config.ConfigFileContentToYaml(f.name, f.text)
		all = append(all, config.RateLimitConfigToLoad{Name: f.name, ConfigYaml: root})
	}
	return oracle{config.NewRateLimitConfigImpl(all, manager, merge)}, nil
}

// loadOurs loads files as Headgate does.
func loadOurs(files []file, merge bool) (*envoy.Config, []error) {
	var domains []*envoy.Domain
	for _, f := range files {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(f.text), &doc); err != nil {
			return nil, []error{err}
		}
		d, errs := envoy.ParseDomain(f.name, &doc)
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

// applies is the limit that applies to a descriptor; the zero value is none.
type applies struct {
	requests                 uint32
	unit                     int32
	name, replaces           string
	unlimited, shadow, quota bool
	path                     string // of its statistics
	key                      string // of its counter, as upstream makes it
}

func (o oracle) applies(domain string, d *envoy.Descriptor) applies {
	pb := message(d)
	l := o.config.GetLimit(context.Background(), domain, pb)
	if l == nil {
		return applies{}
	}
	a := applies{
		requests: l.Limit.GetRequestsPerUnit(), unit: int32(l.Limit.GetUnit()), name: l.Name,
		replaces: strings.Join(l.Replaces, " "), unlimited: l.Unlimited, shadow: l.ShadowMode,
		quota: l.QuotaMode, path: l.Stats.GetKey(),
	}
	if !l.Unlimited {
		a.key = strings.TrimSuffix(keys.GenerateCacheKey(domain, pb, l, 0).Key, "0")
	}
	return a
}

func ours(c *envoy.Config, domain string, d *envoy.Descriptor) applies {
	f, ok := c.Find(domain, d)
	if !ok {
		return applies{}
	}
	a := applies{
		requests: f.Limit.RequestsPerUnit, unit: int32(f.Limit.Unit), name: f.Limit.Name,
		replaces: strings.Join(f.Replaces, " "), unlimited: f.Unlimited, shadow: f.Shadow,
		quota: f.Quota, path: domain + "." + f.Path,
	}
	if !f.Unlimited {
		a.key = glue(f.Key)
	}
	return a
}

// message is d as upstream has it.
func message(d *envoy.Descriptor) *pbcommon.RateLimitDescriptor {
	pb := &pbcommon.RateLimitDescriptor{}
	for _, e := range d.Entries {
		entry := &pbcommon.RateLimitDescriptor_Entry{Key: e.Key, Value: e.Value}
		pb.Entries = append(pb.Entries, entry)
	}
	if d.HasHits {
		pb.HitsAddend = wrapperspb.UInt64(d.Hits)
	}
	return pb
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
