//go:build unix

package cli

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// rendered is the chart as helm renders it; make chart-check has it.
var rendered = flag.String("chart", "", "compare this `FILE`, the output of helm template, instead")

const chart = deploy + "helm/headgate/"

// render renders the chart with values in the place of those of its file.
func render(t *testing.T, values map[string]any) []byte {
	t.Helper()
	all := make(map[string]any)
	text, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, values)
	indent := func(n int, text string) string {
		space := strings.Repeat(" ", n)
		return space + strings.ReplaceAll(text, "\n", "\n"+space)
	}
	// The functions of helm that the template uses.
	parsed, err := template.New("headgate.yaml").Option("missingkey=error").Funcs(template.FuncMap{
		"indent":  indent,
		"nindent": func(n int, text string) string { return "\n" + indent(n, text) },
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
	}).ParseFiles(chart + "templates/headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	release := map[string]any{"Name": "headgate"}
	if err := parsed.Execute(&out, map[string]any{"Values": all, "Release": release}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// objects returns the objects of a file by their kind.
func objects(t *testing.T, text []byte) map[string]any {
	t.Helper()
	all := make(map[string]any)
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if kind, ok := object["kind"].(string); ok {
			all[kind] = object
		}
	}
}

// The chart makes the objects of the manifest.
func TestChartIsTheManifest(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile(deploy + "kubernetes/headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made := render(t, nil)
	if *rendered != "" {
		if made, err = os.ReadFile(*rendered); err != nil {
			t.Fatal(err)
		}
	}
	got, want := objects(t, made), objects(t, manifest)
	if len(want) != 5 || !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("the chart has %v; want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for kind := range want {
		if !reflect.DeepEqual(got[kind], want[kind]) {
			t.Errorf("%s is\n%v\nwant\n%v", kind, got[kind], want[kind])
		}
	}
}

// Each value of the chart has an effect, and what it makes can be read.
func TestChartValues(t *testing.T) {
	t.Parallel()
	plain := string(render(t, nil))
	for name, value := range map[string]any{
		"rules": "rules: []\n", "secret": "other", "replicas": 3, "image": "registry.example/headgate:1",
		"console": "keys", "grafana": "https://grafana.example/d/headgate", "maxConnections": 5, "logFormat": "text",
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}, "memoryLimit": "900MiB", "clientLabel": "",
	} {
		made := render(t, map[string]any{name: value})
		if string(made) == plain {
			t.Errorf("%s has no effect", name)
		}
		if n := len(objects(t, made)); n != 5 && (name != "clientLabel" || n != 4) {
			t.Errorf("%s: %d objects", name, n)
		}
	}
}
