//go:build unix

package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/internal/redistest"
)

const deploy = "../../../../deploy/"

// metricNames are the metrics of Headgate that a text mentions.
func metricNames(text string) []string {
	names := regexp.MustCompile(`\b(headgate|ratelimit)_[a-z0-9_]*[a-z0-9]\b`).FindAllString(text, -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// Every metric that the dashboard, the alerts and the pages name exists in a server that has served.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	file := writeFile(t, filepath.Join(t.TempDir(), "edge.yaml"),
		"domain: edge\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 5}}]\n")
	rules := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), "rules: [{name: a, key: ip, limits: 5/m}]\n")
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--config", file, "--config", rules,
		"--store", "redis://"+redistest.Start(t).Addr)...)...)
	s.get("http", "/auth/a")
	_, page := s.get("http", "/metrics")
	labelled := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"),
		"rules: [{name: a, key: ip, limits: 5/m, label_keys: true, max_wait: 1s, "+
			"cost: {tokens: {estimate: 1}}}]\n")
	inMemory := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--config", labelled)...)...)
	inMemory.get("http", "/auth/a")
	_, more := inMemory.get("http", "/metrics")
	page += more
	for _, name := range []string{
		"grafana/headgate.json", "prometheus/alerts.yaml", "README.md", "../docs/serve/README.md",
	} {
		text, err := os.ReadFile(deploy + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range metricNames(string(text)) {
			if !regexp.MustCompile(`(?m)^` + metric + `(_count)?[{ ]`).MatchString(page) {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
	}
}

// The dashboard is JSON that Grafana can import: panels have distinct ids and an expression each.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(deploy + "grafana/headgate.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string `json:"uid"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct {
				X int `json:"x"`
				W int `json:"w"`
			} `json:"gridPos"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if seen[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q at %+v", p.ID, p.Title, p.GridPos)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			if len(metricNames(target.Expr)) == 0 && !strings.Contains(target.Expr, "process_") {
				t.Errorf("panel %q: no metric in %q", p.Title, target.Expr)
			}
		}
	}
	if dashboard.UID == "" || len(seen) == 0 {
		t.Error("no panels")
	}
}

// The server accepts the flags and the rules of the files that start it elsewhere.
func TestDeployedCommands(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`--[a-z-]+`)
	known := make(map[string]bool)
	for _, name := range command.FlagNames(newServe()) {
		known["--"+name] = true
	}
	for name, command := range map[string]*regexp.Regexp{
		"Dockerfile":               regexp.MustCompile(`(?m)^CMD .*$`),
		"compose/compose.yaml":     regexp.MustCompile(`(?s)- serve\n.*?volumes:`),
		"kubernetes/headgate.yaml": regexp.MustCompile(`(?s)- serve\n.*?env:`),
		"systemd/headgate.service": regexp.MustCompile(`(?m)^Exec.*headgate serve.*$`),
	} {
		text, err := os.ReadFile(deploy + name)
		if err != nil {
			t.Fatal(err)
		}
		found := command.FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: no command", name)
		}
		for _, f := range flag.FindAllString(strings.Join(found, "\n"), -1) {
			if !known[f] {
				t.Errorf("%s: there is no flag %s", name, f)
			}
		}
	}
	for name, rules := range deployedRules(t) {
		rules = strings.ReplaceAll(rules, "${HEADGATE_TOKEN}", "0123456789abcdef")
		file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), rules)
		var out, stderr strings.Builder
		code := exec(t.Context(), []string{"serve", "--check", file}, strings.NewReader(""), &out, &stderr)
		if code != 0 || !strings.Contains(out.String(), "valid: 1 file") {
			t.Errorf("%s: exit %d\n%s%s", name, code, &out, &stderr)
		}
	}
}

// deployedRules returns the rules of the files that have some.
func deployedRules(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for name, begin := range map[string]string{
		"kubernetes/headgate.yaml": "rules.yaml: |\n", "compose/rules/rules.yaml": "",
	} {
		text, err := os.ReadFile(deploy + name)
		if err != nil {
			t.Fatal(err)
		}
		_, rules, _ := strings.Cut("\n"+string(text), begin)
		rules, _, _ = strings.Cut(rules, "---\n")
		if begin != "" {
			rules = strings.ReplaceAll(rules, "\n    ", "\n")[4:]
		}
		all[name] = rules
	}
	return all
}

// Beyond loopback, operators need a token. So each file that starts the server elsewhere names one,
// and sets the variables that its rules and flags read.
func TestDeployedVariables(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"GOMEMLIMIT": true}
	for _, name := range command.FlagNames(newServe()) {
		known["HEADGATE_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = true
	}
	rules := deployedRules(t)
	for name, text := range map[string]string{
		"kubernetes/headgate.yaml": rules["kubernetes/headgate.yaml"],
		"compose/compose.yaml":     rules["compose/rules/rules.yaml"],
	} {
		read := regexp.MustCompile(`\$\{([A-Z_]+)\}`).FindAllStringSubmatch(text, -1)
		if !strings.Contains(text, "tokens:") || len(read) == 0 {
			t.Errorf("%s: the rules name no token:\n%s", name, text)
		}
		set := deployedVariables(t, name)
		for _, variable := range read {
			if !slices.Contains(set, variable[1]) {
				t.Errorf("%s: the rules read %s, which is not set", name, variable[1])
			}
			known[variable[1]] = true
		}
		for _, variable := range set {
			if !known[variable] {
				t.Errorf("%s: nothing reads %s", name, variable)
			}
		}
		if !slices.Contains(set, "GOMEMLIMIT") {
			t.Errorf("%s: GOMEMLIMIT is not set", name)
		}
	}
}

// deployedVariables returns the names of the variables that a file sets.
func deployedVariables(t *testing.T, name string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(deploy + name)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var document struct {
			Services map[string]struct{ Environment map[string]string }
			Spec     struct {
				Template struct {
					Spec struct {
						Containers []struct{ Env []struct{ Name string } }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(part), &document); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, s := range document.Services {
			names = slices.AppendSeq(names, maps.Keys(s.Environment))
		}
		for _, c := range document.Spec.Template.Spec.Containers {
			for _, v := range c.Env {
				names = append(names, v.Name)
			}
		}
	}
	return names
}

// The policy of the manifest lets clients in to the ports that they use, and nobody else.
func TestDeployedNetworkPolicy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(deploy + "kubernetes/headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ports := make(map[string]bool)
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var document struct {
			Kind string
			Spec struct {
				Ingress []struct {
					From []struct {
						PodSelector map[string]map[string]string `yaml:"podSelector"`
					}
					Ports []struct{ Port string }
				}
			}
		}
		if !strings.Contains(part, "kind: NetworkPolicy") {
			continue
		}
		if err := yaml.Unmarshal([]byte(part), &document); err != nil {
			t.Fatal(err)
		}
		for _, rule := range document.Spec.Ingress {
			for _, from := range rule.From {
				if len(from.PodSelector["matchLabels"]) == 0 {
					t.Errorf("every pod may connect: %+v", rule)
				}
			}
			for _, p := range rule.Ports {
				ports[p.Port] = len(rule.From) > 0
			}
		}
	}
	for _, port := range []string{"http", "grpc", "metrics"} {
		if !ports[port] || !strings.Contains(string(text), "{name: "+port+", containerPort: ") {
			t.Errorf("the policy and the container do not have the port %s", port)
		}
	}
}

// Compose mounts directories: a file that an editor replaces would stay as it was in the container.
func TestComposeMountsDirectories(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(deploy + "compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mounts := regexp.MustCompile(`(?m)^ *- (\./[^:]*):`).FindAllStringSubmatch(string(text), -1)
	if len(mounts) == 0 {
		t.Error("no mounts")
	}
	for _, m := range mounts {
		if info, err := os.Stat(deploy + "compose/" + m[1]); err != nil || !info.IsDir() { //nolint:gosec // a file of this repository
			t.Errorf("%s is no directory: %v", m[1], err)
		}
	}
}
