//go:build unix

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	code "github.com/headgate/headgate/internal/snippets"
	"github.com/headgate/headgate/redisstore"
)

const recipes = "../../../../docs/recipes.md"

// recipe starts a server with a rules file of docs/recipes.md, the n-th.
func recipe(t *testing.T, n int, args ...string) *server {
	t.Helper()
	page, err := os.ReadFile(recipes)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(found) != 4 {
		t.Fatalf("%d files, want 4", len(found))
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), "trust: [127.0.0.1/32]\n"+string(found[n][1]))
	args = append([]string{"headgate"}, append(serveOn, append(args, "--config", file)...)...)
	return startServer(t, nil, args...)
}

// limits sends a request and returns the limits that decided it.
func (s *server) limits(path, field, value, address string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addresses["http"]+"/auth", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set(field, value)
	r.Header.Set("X-Forwarded-Uri", path)
	r.Header.Set("X-Forwarded-For", address)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
	return answer.Header.Get("Ratelimit-Policy")
}

func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		recipe                           int
		path, field, value, from, limits string
	}{
		{0, "/", "X", "", "192.0.2.1", `"site";q=1000;w=1, "client";q=20;w=12`},
		{0, "/", "X", "", "172.16.2.3", `"site";q=1000;w=1`},
		{1, "/v1/a", "X-Api-Key", "k", "192.0.2.1", `"plan";q=60;w=60, "plan.2";q=10000, "address";q=300;w=60`},
		{1, "/", "X-Api-Key", "k", "192.0.2.1", `"address";q=300;w=60`},
		{2, "/", "X-User", "ann", "192.0.2.1", `"user";q=600;w=60, "address";q=1200;w=60`},
	} {
		if got := recipe(t, test.recipe).limits(test.path, test.field, test.value, test.from); got != test.limits {
			t.Errorf("recipe %d, from %s: %s", test.recipe, test.from, got)
		}
	}
}

// A program in Go and the server count the requests of a key together.
func TestRecipeOfAProgramAndTheServer(t *testing.T) {
	t.Parallel()
	code.Check(t, recipes, "shared", "recipes_test.go")
	redis := redistest.Start(t).Addr
	store, err := redisstore.Open("redis://" + redis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	limit, err := func() (func(http.Handler) http.Handler, error) {
		limiter, err := headgate.NewLimiter(store, headgate.PerDay(100).Named("api"))
		if err != nil {
			return nil, err
		}
		limit, err := httplimit.New(limiter, httplimit.Options{
			Key: httplimit.Key(httplimit.Header("X-Api-Key")), // without middleware: "header:" + VALUE
		})
		return limit, err
	}()
	if err != nil {
		t.Fatal(err)
	}
	s := recipe(t, 3, "--store", "redis://"+redis)
	for range 3 {
		s.limits("/", "X-Api-Key", "k", "192.0.2.1")
	}
	command := strings.Replace(snippets(t, recipes, "sh"), "127.0.0.1:8080", s.addresses["http"], 1)
	out, err := osexec.CommandContext(t.Context(), "sh", "-c", "curl() { "+interpreter(t, "curl")+" -s \"$@\"; }; "+command).Output()
	if err != nil || !strings.Contains(string(out), `"remaining":99,`) {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	for key, want := range map[string]string{"k": "96", "other": "99"} { // a token takes 14 minutes
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		limit(http.NotFoundHandler()).ServeHTTP(w, r)
		if got := w.Header().Get("X-Ratelimit-Remaining"); got != want {
			t.Errorf("%s: %s remain, want %s", key, got, want)
		}
	}
}
