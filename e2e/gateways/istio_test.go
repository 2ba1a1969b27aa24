//go:build gateways

package gateways

import (
	"encoding/json"
	"maps"
	"os/exec"
	"testing"

	"go.yaml.in/yaml/v3"
)

// envoyFilter is a resource of Istio, as far as it says what goes into Envoy.
type envoyFilter struct {
	Spec struct {
		ConfigPatches []struct {
			ApplyTo string `yaml:"applyTo"`
			Patch   struct {
				Operation string `yaml:"operation"`
				Value     object `yaml:"value"`
			} `yaml:"patch"`
		} `yaml:"configPatches"`
	} `yaml:"spec"`
}

type object = map[string]any

// Envoy accepts the values of the page's files for Istio in the places that their patches name.
func TestIstioFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"istio-rules.yaml", "istio-descriptors.yaml"} {
		text := files(t, "envoy.md")[name]
		for what, config := range map[string]string{
			"as it is":        text,
			"an unknown name": edit(t, text, "transport_api_version:", "transport_version:"),
		} {
			file := merged(t, config)
			for _, path := range []string{envoy(), oldEnvoy()} {
				dir := directory(t)
				write(t, dir, map[string]string{"envoy.json": file})
				validate := exec.CommandContext(t.Context(), path, "--mode", "validate", "-c", "envoy.json")
				validate.Dir = dir
				out, err := validate.CombinedOutput()
				if (err == nil) != (what == "as it is") {
					t.Errorf("%s, %s: %v\n%s", name, what, err, out)
				}
			}
		}
	}
}

// merged is the configuration of an Envoy as in Istio's gateway, with the patches of an EnvoyFilter.
func merged(t *testing.T, text string) string {
	t.Helper()
	var filter envoyFilter
	if err := yaml.Unmarshal([]byte(text), &filter); err != nil {
		t.Fatal(err)
	}
	const types = "type.googleapis.com/envoy.extensions.filters."
	filters := []any{}
	host := object{"name": "all", "domains": []any{"*"},
		"routes": []any{object{"match": object{"prefix": "/"}, "route": object{"cluster": "app"}}}}
	for _, p := range filter.Spec.ConfigPatches {
		switch p.ApplyTo + " " + p.Patch.Operation {
		case "HTTP_FILTER INSERT_BEFORE":
			filters = append(filters, p.Patch.Value)
		case "VIRTUAL_HOST MERGE":
			maps.Copy(host, p.Patch.Value)
		default:
			t.Fatalf("%s %s", p.ApplyTo, p.Patch.Operation)
		}
	}
	filters = append(filters, object{"name": "envoy.filters.http.router",
		"typed_config": object{"@type": types + "http.router.v3.Router"}})
	manager := object{
		"@type":        types + "network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":  "web",
		"route_config": object{"virtual_hosts": []any{host}},
		"http_filters": filters,
	}
	listener := object{
		"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 8000}},
		"filter_chains": []any{object{"filters": []any{object{
			"name": "envoy.filters.network.http_connection_manager", "typed_config": manager,
		}}}},
	}
	clusters := []any{object{"name": "app"},
		object{"name": "outbound|8081||headgate.default.svc.cluster.local"}}
	config, err := json.Marshal(object{
		"static_resources": object{"listeners": []any{listener}, "clusters": clusters},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}
