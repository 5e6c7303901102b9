package schemas_test

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/schemas"
)

// The schemas have exactly the fields of the Go types, and require exactly those that are not optional, all
// the way down.
func TestSchemasHaveTheFieldsOfTheTypes(t *testing.T) {
	for _, fresh := range messages {
		m := fresh()
		w := &walker{
			t:      t,
			file:   "messages/" + m.Name() + ".schema.json",
			place:  m.Name(),
			tag:    "msgpack",
			common: []string{"t", "v"},
		}
		w.compare(w.load(w.file), reflect.TypeOf(m).Elem())
	}
	w := &walker{t: t, file: "result.schema.json", place: "result", tag: "json"}
	w.compare(w.load(w.file), reflect.TypeFor[query.Result]())
}

// walker is at one place of a schema and the Go type beside it.
type walker struct {
	t      *testing.T
	file   string // of the schema, for relative references
	place  string
	tag    string
	common []string // keys that the codec adds
}

func (w *walker) load(file string) map[string]any {
	b, err := schemas.FS.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(b, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// resolve follows references and steps into the first alternative of "something or null".
func (w *walker) resolve(s map[string]any) map[string]any {
	for {
		if ref, ok := s["$ref"].(string); ok {
			file, pointer, _ := strings.Cut(ref, "#/")
			if file != "" {
				w.file = path.Join(path.Dir(w.file), file)
			}
			s = w.load(w.file)
			for step := range strings.SplitSeq(pointer, "/") {
				if step != "" {
					s = s[step].(map[string]any)
				}
			}
			continue
		}
		if any, ok := s["anyOf"].([]any); ok {
			s = any[0].(map[string]interface{})
			continue
		}
		return s
	}
}

func (w walker) compare(s map[string]any, t reflect.Type) {
	s = w.resolve(s)
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()): // it describes itself
	case t.Kind() == reflect.Pointer:
		w.compare(s, t.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[codec.Uniform]()):
		w.place += "[]"
		w.compare(s["items"].(map[string]any), reflect.TypeOf(reflect.New(t).Interface().(codec.Uniform).Element()).Elem())
	case t.Kind() == reflect.Slice && (t.Elem().Kind() == reflect.Struct || t.Elem().Kind() == reflect.Pointer):
		w.place += "[]"
		w.compare(s["items"].(map[string]any), t.Elem())
	case t.Kind() == reflect.Struct:
		w.compareStruct(s, t)
	}
}

// merged adds to a schema the properties of those that it refers to under allOf.
func (w walker) merged(s map[string]any) map[string]any {
	all, _ := s["allOf"].([]any)
	for _, one := range all {
		of, _ := one.(map[string]any)
		if _, ok := of["$ref"]; !ok {
			continue
		}
		s = maps.Clone(s)
		properties := map[string]any{}
		own, _ := s["properties"].(map[string]any)
		maps.Copy(properties, own)
		maps.Copy(properties, w.resolve(of)["properties"].(map[string]any))
		s["properties"] = properties
	}
	return s
}

func (w walker) compareStruct(s map[string]any, t reflect.Type) {
	if !hasTag(t, "msgpack") {
		w.tag = "json" // as the codec does: such a struct, and all below it, is keyed as in JSON
	}
	s = w.merged(s)
	keys, required := slices.Clone(w.common), slices.Clone(w.common)
	w.common = nil
	properties, _ := s["properties"].(map[string]any)
	for _, f := range reflect.VisibleFields(t) {
		name, option, _ := strings.Cut(f.Tag.Get(w.tag), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		keys = append(keys, name)
		if option != "omitempty" && option != "omitzero" {
			required = append(required, name)
		}
		if p, ok := properties[name].(map[string]any); ok {
			below := w
			below.place += "." + name
			below.compare(p, f.Type)
		}
	}
	var has, requires []string
	for k := range properties {
		has = append(has, k)
	}
	some, _ := s["required"].([]any)
	for _, k := range some {
		requires = append(requires, k.(string))
	}
	w.same("has", has, keys)
	w.same("requires", requires, required)
}

func (w walker) same(what string, schema, code []string) {
	slices.Sort(schema)
	slices.Sort(code)
	if !slices.Equal(schema, code) {
		w.t.Errorf("%s: the schema %s %v, the type %v", w.place, what, schema, code)
	}
}

func hasTag(t reflect.Type, tag string) bool {
	for _, f := range reflect.VisibleFields(t) {
		if _, ok := f.Tag.Lookup(tag); ok {
			return true
		}
	}
	return false
}
