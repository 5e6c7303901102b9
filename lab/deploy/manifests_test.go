//go:build nightly

// Package deploy holds the tests of the folder deploy: manifests against schemas and policies, the services they start, and the image.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

const folder = "../../deploy/kubernetes/"

// overlays are the names of all overlays: "page" is in docs/how-to/kubernetes.md, "prometheus" is the production overlay with the other
// way to scale.
var overlays = []string{"page", "single", "production", "prometheus"}

// written has the text of an overlay that is not in the folder.
var written = map[string]func(*testing.T) string{
	"page": func(t *testing.T) string {
		text, err := os.ReadFile("../../docs/how-to/kubernetes.md")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "```yaml\n")
		block, _, _ := strings.Cut(rest, "```")
		return strings.Replace(block, "https://github.com/basetensor/basetensor//deploy/kubernetes/base?ref=v1.2.3", "../base", 1)
	},
	"prometheus": func(t *testing.T) string {
		text, err := os.ReadFile(folder + "production/kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), "../components/keda", "../components/keda-prometheus\n- ../components/podmonitor")
	},
}

// object is one of the cluster.
type object struct {
	kind, name string
	yaml       []byte
}

// build returns the objects of an overlay.
func build(t *testing.T, overlay string) []object {
	t.Helper()
	path := folder + overlay
	if text := written[overlay]; text != nil {
		path = t.TempDir()
		absolute, err := filepath.Abs(folder)
		if err != nil {
			t.Fatal(err)
		}
		// a kustomization names other folders by relative paths only
		relative, err := filepath.Rel(path, absolute)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(text(t), "../", relative+"/")
		if err := os.WriteFile(filepath.Join(path, "kustomization.yaml"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	options := krusty.MakeDefaultOptions() // as kubectl apply -k has them: nothing is read outside of the folders
	all, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		t.Fatalf("%s: %v", overlay, err)
	}
	var list []object
	for _, r := range all.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, object{r.GetKind(), r.GetName(), text})
	}
	return list
}

// decoder reads the kinds of Kubernetes itself; a field that they do not have is an error.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// typed returns an object of the overlay's as its type, or nil if it is not Kubernetes' own.
func (o object) typed(t *testing.T) runtime.Object {
	t.Helper()
	if _, foreign := definitions[o.kind]; foreign {
		return nil
	}
	x, _, err := decoder.Decode(o.yaml, nil, nil)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", o.kind, o.name, err, o.yaml)
	}
	return x
}

// podJSON is a pod with that name and specification.
func podJSON(t *testing.T, name string, spec *corev1.PodSpec) []byte {
	t.Helper()
	p := corev1.Pod{Spec: *spec}
	p.Kind, p.APIVersion, p.Name = "Pod", "v1", name
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// template returns the pod that an object makes, if it makes one.
func template(x runtime.Object) *corev1.PodTemplateSpec {
	switch x := x.(type) {
	case *appsv1.Deployment:
		return &x.Spec.Template
	case *appsv1.StatefulSet:
		for _, claim := range x.Spec.VolumeClaimTemplates { // its controller gives the pod a volume for each
			volume := corev1.Volume{Name: claim.Name}
			volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}
			x.Spec.Template.Spec.Volumes = append(x.Spec.Template.Spec.Volumes, volume)
		}
		return &x.Spec.Template
	case *batchv1.Job:
		return &x.Spec.Template
	}
	return nil
}

// Every object has only the fields that its kind has, and all it must have.
func TestManifestsHaveTheirSchemas(t *testing.T) {
	schemaOf := schemas(t)
	for _, overlay := range overlays {
		for _, o := range build(t, overlay) {
			o.typed(t)
			schema := schemaOf(o)
			var value any
			if err := yaml.Unmarshal(o.yaml, &value); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %s %s: %v", overlay, o.kind, o.name, err)
			}
		}
	}
}

// The schemas refuse wrong manifests.
func TestSchemasRefuse(t *testing.T) {
	schemaOf := schemas(t)
	for _, c := range []struct{ kind, old, new string }{
		{"Deployment", "readinessProbe", "readynessProbe"},
		{"Deployment", "replicas: 1", "replicas: one"},
		{"PodDisruptionBudget", "matchLabels", "matchlabels"},
		{"Job", "template:", "templates:"},
		{"ScaledObject", "triggers:", "trigger:"},
		{"ScaledObject", "maxReplicaCount: 20", "maxReplicaCount: many"},
		{"Ingress", "pathType", "pathtype"},
		{"PodMonitor", "podMetricsEndpoints", "endpoints"},
		{"PodMonitor", "interval: 15s", "interval: often"},
	} {
		refused := false
		for _, o := range slices.Concat(build(t, "single"), build(t, "production"), build(t, "prometheus")) {
			text := bytes.Replace(o.yaml, []byte(c.old), []byte(c.new), 1)
			if o.kind != c.kind || bytes.Equal(text, o.yaml) {
				continue
			}
			schema := schemaOf(o)
			var value any
			if err := yaml.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			refused = refused || schema.Validate(value) != nil
		}
		if !refused {
			t.Errorf("%s with %q is accepted", c.kind, c.new)
		}
	}
}

// schemas returns the schema of an object: of Kubernetes, or of a definition of another project.
func schemas(t *testing.T) func(object) *jsonschema.Schema {
	t.Helper()
	known := map[string]any{}
	for name := range openapi.Schema().Definitions {
		text, err := openapi.Schema().Definitions[name].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		known[name] = strict(t, text)
	}
	known["io.k8s.apimachinery.pkg.api.resource.Quantity"] = map[string]any{"type": []any{"string", "number"}}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("kubernetes.json", map[string]any{"definitions": known}); err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*jsonschema.Schema{}
	foreign := map[string]*jsonschema.Schema{}
	for kind := range definitions {
		foreign[kind] = foreignSchema(t, kind)
	}
	return func(o object) *jsonschema.Schema {
		if foreign[o.kind] != nil {
			return foreign[o.kind]
		}
		for name, d := range known {
			for _, gvk := range kinds(d) {
				if gvk != version(o)+" "+o.kind {
					continue
				}
				if compiled[name] == nil {
					schema, err := compiler.Compile("kubernetes.json#/definitions/" + name)
					if err != nil {
						t.Fatal(err)
					}
					compiled[name] = schema
				}
				return compiled[name]
			}
		}
		t.Fatalf("no schema of %s %s", version(o), o.kind)
		return nil
	}
}

// version is the apiVersion of an object.
func version(o object) string {
	var head struct{ APIVersion string }
	if yaml.Unmarshal(o.yaml, &head) != nil {
		return ""
	}
	return head.APIVersion
}

// kinds lists the kinds that a definition describes.
func kinds(definition any) (list []string) {
	all, _ := definition.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
	for _, k := range all {
		k := k.(map[string]any)
		list = append(list, strings.TrimPrefix(k["group"].(string)+"/"+k["version"].(string)+" "+k["kind"].(string), "/"))
	}
	return list
}

// strict reads a schema and closes every object in it; fields of numbers or text become both.
func strict(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["properties"] != nil && v["additionalProperties"] == nil && v["x-kubernetes-preserve-unknown-fields"] == nil {
				v["additionalProperties"] = false
			}
			if v["format"] == "int-or-string" {
				v["type"] = []any{"string", "integer"}
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(value)
	return value
}

// definition is where a kind of another project is defined: in a file of a Go module, which nothing here is built from.
type definition struct{ module, sum, file string }

var definitions = map[string]definition{
	"ScaledObject": {
		"github.com/kedacore/keda/v2@v2.19.0", "h1:IP3iMTwr9HkaAwPtLnhngPv74LghMf7ubLrsGLQo52M=",
		"config/crd/bases/keda.sh_scaledobjects.yaml",
	},
	"PodMonitor": {
		"github.com/prometheus-operator/prometheus-operator@v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
	},
}

// definitionOf reads the definition of a kind.
func definitionOf(t *testing.T, kind string) []byte {
	t.Helper()
	d := definitions[kind]
	cmd := exec.Command("go", "mod", "download", "-json", d.module)
	cmd.Dir = t.TempDir() // outside of any module
	out, err := cmd.Output()
	var module struct{ Dir, Sum, Error string }
	if err := errors.Join(err, json.Unmarshal(out, &module)); err != nil || module.Error != "" {
		t.Skipf("no schema of %ss: %v %s", kind, err, module.Error)
	}
	if module.Sum != d.sum {
		t.Fatalf("%s has the sum %s, want %s", d.module, module.Sum, d.sum)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, d.file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// foreignSchema is the schema in the definition of a kind.
func foreignSchema(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema json.RawMessage }
			}
		}
	}
	if err := yaml.Unmarshal(definitionOf(t, kind), &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s: %v", kind, err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("foreign.json", strict(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("foreign.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// Every pod keeps to the pod security standard "restricted" and has a root file system that cannot be written, and no token of the cluster.
func TestPodsAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range overlays {
		for _, o := range build(t, overlay) {
			pod := template(o.typed(t))
			if pod == nil {
				continue
			}
			level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
			for _, result := range checks.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", overlay, o.name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s gets a token", overlay, o.name)
			}
			for _, c := range pod.Spec.Containers {
				if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s may write its root", overlay, o.name)
				}
				request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
				if request == 0 || limit == 0 {
					t.Errorf("%s: %s has no request or no limit of memory", overlay, o.name)
				}
				// GOMEMLIMIT is the request: memory that Go does not count needs room below the limit
				for _, e := range c.Env {
					if e.Name == "GOMEMLIMIT" && (e.ValueFrom == nil || e.ValueFrom.ResourceFieldRef.Resource != "requests.memory" ||
						10*request > 9*limit+limit/10) {
						t.Errorf("%s: %s: GOMEMLIMIT is %d of %d bytes", overlay, o.name, request, limit)
					}
				}
			}
		}
	}
}
