//go:build nightly

package deploy

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chart = "../../deploy/helm/basetensor"

// rendered returns the objects of the chart with values, by Helm's own library.
func rendered(t *testing.T, values map[string]any) []object {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "basetensor", Namespace: "basetensor"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var list []object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, text := range strings.Split("\n"+files[name], "\n---\n") {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			if head.Kind != "" {
				list = append(list, object{head.Kind, head.Metadata.Name, []byte(text)})
			}
		}
	}
	return list
}

// plain returns objects by kind and name, typed by Kubernetes' own schemas, without the ways of Helm and of kustomize: the
// namespace, the hash in the name of the settings and in an annotation, the hooks of Helm, and the order of variables.
func plain(t *testing.T, all []object) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, o := range all {
		if o.kind == "Namespace" {
			continue
		}
		text, err := json.Marshal(o.typed(t))
		if err != nil {
			t.Fatal(err)
		}
		var value map[string]any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		name := o.name
		if o.kind == "ConfigMap" {
			name, _, _ = strings.Cut(name, "-")
		}
		value["metadata"].(map[string]any)["name"] = name
		strip(value)
		out[o.kind+" "+name] = value
	}
	return out
}

// strip is plain of a part of an object.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range []string{"namespace", "creationTimestamp", "status"} {
			delete(v, name)
		}
		if notes, ok := v["annotations"].(map[string]any); ok {
			maps.DeleteFunc(notes, func(name string, _ any) bool {
				return strings.HasPrefix(name, "helm.sh/") || strings.HasPrefix(name, "checksum/")
			})
			if len(notes) == 0 {
				delete(v, "annotations")
			}
		}
		if from, ok := v["configMapRef"].(map[string]any); ok {
			from["name"], _, _ = strings.Cut(from["name"].(string), "-")
		}
		if env, ok := v["env"].([]any); ok {
			slices.SortFunc(env, func(a, b any) int {
				return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
			})
		}
		for _, part := range v {
			strip(part)
		}
	case []any:
		for _, part := range v {
			strip(part)
		}
	}
}

// The chart makes the objects of the kustomize base, field by field.
func TestChartIsTheBase(t *testing.T) {
	want, have := plain(t, build(t, "base")), plain(t, rendered(t, nil))
	for name := range want {
		if !reflect.DeepEqual(want[name], have[name]) {
			w, _ := json.MarshalIndent(want[name], "", " ")
			h, _ := json.MarshalIndent(have[name], "", " ")
			t.Errorf("%s: the base has\n%s\nthe chart\n%s", name, w, h)
		}
	}
	for name := range have {
		if want[name] == nil {
			t.Errorf("the base has no %s", name)
		}
	}
}

// Values change the fields that they name.
func TestChartTakesValues(t *testing.T) {
	text := ""
	for _, o := range rendered(t, map[string]any{
		"image": "registry.example.com/basetensor", "tag": "v1.2.3",
		"settings": map[string]any{"BTN_NATS": "nats://elsewhere:4222"},
		"stages":   map[string]any{"contract-worker": map[string]any{"replicas": 7, "env": map[string]any{"BTN_THREADS": 64}}},
	}) {
		o.typed(t)
		text += string(o.yaml)
	}
	for part, times := range map[string]int{
		`image: "registry.example.com/basetensor:v1.2.3"`: 6, `"BTN_NATS":"nats://elsewhere:4222"`: 1, "replicas: 7": 1,
		`{name: BTN_THREADS, value: "64"}`: 1,
	} {
		if n := strings.Count(text, part); n != times {
			t.Errorf("%s is there %d times, want %d", part, n, times)
		}
	}
}
