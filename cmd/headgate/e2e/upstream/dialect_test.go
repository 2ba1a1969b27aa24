package upstream

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// seeded returns a generator of a seed: in soak a random one, or that of HEADGATE_SEED.
func seeded(t *testing.T, seed uint64) random {
	t.Helper()
	if os.Getenv("HEADGATE_SOAK") != "" {
		seed = rand.Uint64()
	}
	if one, err := strconv.ParseUint(os.Getenv("HEADGATE_SEED"), 10, 64); err == nil {
		seed = one
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with HEADGATE_SEED=%d", seed)
		}
	})
	return random{Rand: rand.New(rand.NewPCG(seed, 2))}
}

// TestTheSameLimitApplies compares what applies to 50,000 random descriptors under random
// configurations: the limit, the path of its statistics and the key of its counter.
func TestTheSameLimitApplies(t *testing.T) {
	const configs, each = 2_500, 20
	r := seeded(t, 1)
	limits := 0
	for loaded := 0; loaded < configs; {
		files := []file{{"f.yaml", r.config("d")}}
		o, theirs := loadUpstream(files, false)
		c, errs := loadOurs(files, false)
		if diff := agree(theirs, errs); diff != "" {
			t.Fatalf("%s\n%s", diff, files[0].text)
		}
		if theirs != nil {
			continue
		}
		loaded++
		for range each {
			d := r.descriptor()
			want, got := o.applies("d", d), ours(c, "d", d)
			if got != want {
				t.Fatalf("%s\n%+v\ngot  %+v\nwant %+v", files[0].text, d.Entries, got, want)
			}
			if want != (applies{}) {
				limits++
			}
		}
	}
	if limits < configs*each/10 {
		t.Errorf("a limit applied to %d of %d descriptors; want at least a tenth", limits, configs*each)
	}
}

// TestTheSameFilesAreAccepted compares the verdicts on configurations with random faults.
func TestTheSameFilesAreAccepted(t *testing.T) {
	r := seeded(t, 3)
	accepted, refused := 0, 0
	for range 5_000 {
		text := r.config("d")
		for range 1 + r.IntN(3) {
			text = r.mutate(text)
		}
		files := []file{{"f.yaml", text}}
		_, theirs := loadUpstream(files, false)
		_, errs := loadOurs(files, false)
		if diff := agree(theirs, errs); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
		if theirs == nil {
			accepted++
		} else {
			refused++
		}
	}
	if accepted < 500 || refused < 500 {
		t.Errorf("accepted %d, refused %d; want at least 500 of both", accepted, refused)
	}
}

// TestUpstreamsFiles compares the verdicts on every file of configuration in upstream's module:
// those of its own tests, which are good or have one fault each, and its examples.
func TestUpstreamsFiles(t *testing.T) {
	dir, err := ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, pattern := range []string{
		"test/config/*.yaml", "examples/ratelimit/config/*.yaml",
		"test/integration/runtime/current/ratelimit/*.yaml",
		"test/integration/runtime/current/ratelimit/config/*.yaml",
	} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			compareFiles(t, false, read(t, name))
			count++
		}
	}
	if count < 20 {
		t.Errorf("found %d files; want at least 20", count)
	}
	one := read(t, filepath.Join(dir, "test/config/merge_domain_key1.yaml"))
	two := read(t, filepath.Join(dir, "test/config/merge_domain_key2.yaml"))
	compareFiles(t, true, one, two)
	compareFiles(t, false, one, two)
	compareFiles(t, true, one, one)
	basic := read(t, filepath.Join(dir, "test/config/basic_config.yaml"))
	compareFiles(t, false, basic, read(t, filepath.Join(dir, "test/config/duplicate_domain.yaml")))
}

func compareFiles(t *testing.T, merge bool, files ...file) {
	t.Helper()
	_, theirs := loadUpstream(files, merge)
	_, errs := loadOurs(files, merge)
	if diff := agree(theirs, errs); diff != "" {
		t.Errorf("%s: %s", files[0].name, diff)
	}
}

func read(t *testing.T, name string) file {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return file{filepath.Base(name), string(text)}
}
