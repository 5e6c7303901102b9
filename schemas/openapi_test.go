package schemas_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/schemas"
)

// bodies are the Go types of the gateway's requests and replies, by the names of their schemas.
var bodies = map[string]reflect.Type{
	"Infer":         reflect.TypeFor[gateway.Infer](),
	"Cases":         reflect.TypeFor[gateway.Cases](),
	"CaseTable":     reflect.TypeFor[gateway.CaseTable](),
	"Asked":         reflect.TypeFor[gateway.Query](),
	"Settings":      reflect.TypeFor[query.Settings](),
	"Answer":        reflect.TypeFor[gateway.Answer](),
	"Submitted":     reflect.TypeFor[gateway.Submitted](),
	"Job":           reflect.TypeFor[gateway.Job](),
	"Progress":      reflect.TypeFor[gateway.Progress](),
	"Span":          reflect.TypeFor[gateway.Span](),
	"JobLine":       reflect.TypeFor[gateway.JobLine](),
	"Glance":        reflect.TypeFor[gateway.Glance](),
	"First":         reflect.TypeFor[gateway.First](),
	"Jobs":          reflect.TypeFor[gateway.Jobs](),
	"Status":        reflect.TypeFor[gateway.Status](),
	"Access":        reflect.TypeFor[gateway.Access](),
	"StageStatus":   reflect.TypeFor[gateway.StageStatus](),
	"LaneStatus":    reflect.TypeFor[gateway.LaneStatus](),
	"StreamFill":    reflect.TypeFor[gateway.StreamFill](),
	"DeadLetters":   reflect.TypeFor[gateway.DeadLetters](),
	"DeadLetter":    reflect.TypeFor[gateway.DeadLetter](),
	"Models":        reflect.TypeFor[gateway.Models](),
	"Model":         reflect.TypeFor[gateway.Model](),
	"Graph":         reflect.TypeFor[gateway.Graph](),
	"GraphVariable": reflect.TypeFor[gateway.GraphVariable](),
	"GraphFactor":   reflect.TypeFor[gateway.GraphFactor](),
	"JobModel":      reflect.TypeFor[gateway.JobModel](),
	"JobQuery":      reflect.TypeFor[gateway.JobQuery](),
	"Ask":           reflect.TypeFor[named.Ask](),
	"Pair":          reflect.TypeFor[named.Pair](),
	"Failure":       reflect.TypeFor[gateway.Failure](),
	"Error":         reflect.TypeFor[query.ErrorInfo](),
	"Health":        reflect.TypeFor[gateway.Health](),
}

// notStructs are schemas without a struct, or with Asked alone.
var notStructs = []string{"Variable", "Values", "Query"}

const openAPI = "openapi.json"

// TestOpenAPIHasTheFieldsOfTheTypes: every field of the types and no other, and those required that are always there.
func TestOpenAPIHasTheFieldsOfTheTypes(t *testing.T) {
	w := &walker{t: t, file: openAPI, tag: "json"}
	all := w.load(openAPI)["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range notStructs {
		delete(all, name)
	}
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(bodies)); !slices.Equal(got, want) {
		t.Errorf("the document has %v, the types are %v", got, want)
	}
	for name, kind := range bodies {
		if s, ok := all[name].(map[string]any); ok {
			one := &walker{t: t, file: openAPI, place: name, tag: "json"}
			one.compare(s, kind)
		}
	}
}

// bodySchema compiles the schema of a body.
func bodySchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := compiler(t)
	b, err := schemas.FS.ReadFile(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource(schemas.Base+openAPI, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemas.Base + openAPI + "#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSamplesOfRequests: the gateway reads every body that the schema accepts, and both refuse the wrong ones.
func TestSamplesOfRequests(t *testing.T) {
	schema := bodySchema(t, "Infer")
	for body, right := range map[string]bool{
		`{"model_name": "4f1c00", "evidence": {"smoke": "yes", "3": 1, "x": [0.5, 0.5], "y": {"a": 1, "b": 0}}, "joint": ["a", 2]}`: true,
		`{"text": "MARKOV 1 2 0", "format": "uai", "queries": [{"event": {"0": 1}}, {"evid": "1 0 1"}], "async": true}`:             true,
		`{"text": "x", "settings": {"method": "exact", "memory": 1000000}, "deadline_ms": 5, "tenant": "a", "job": "a.b"}`:          true,
		`{"text": "x", "conflict": true, "sensitivity": {"variable": "a", "value": 1, "range": 0.2, "top": 3}}`:                     true,
		`{"text": "x", "marginal": true}`:                false,
		`{"text": "x", "queries": [{"marginal": true}]}`: false,
		`{"text": "x", "settings": {"memory": "1"}}`:     false,
		`{"text": "x", "evidence": {"a": true}}`:         true,
		`{"text": "x", "evidence": {"a": null}}`:         false,
		`{"text": "x", "evidence": {"a": ["1"]}}`:        false,
		`{"text": "x", "evidence": ["a"]}`:               false,
		`{"text": "x", "deadline_ms": "5"}`:              false,
		`{"text": 1}`:                                    false,
	} {
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		var in gateway.Infer
		if err := d.Decode(&in); (err == nil) != right {
			t.Errorf("%s: read: %v", body, err)
		}
		if err := validate(t, schema, []byte(body)); (err == nil) != right {
			t.Errorf("%s: schema: %v", body, err)
		}
	}
}
