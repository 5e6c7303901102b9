package gateway

import (
	"bytes"
	"reflect"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/schemas"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiler knows all schemas and the document.
var compiler = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	for _, path := range append(schemas.Paths(), "openapi.json") {
		b, err := schemas.FS.ReadFile(path)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err == nil {
			err = c.AddResource(schemas.Base+path, doc)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
})

// documented checks a body against the schema of its type's name.
func documented(t testing.TB, kind reflect.Type, body []byte) {
	t.Helper()
	if kind.Kind() != reflect.Struct {
		return
	}
	c, err := compiler()
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemas.Base + "openapi.json#/components/schemas/" + kind.Name())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = s.Validate(doc)
	}
	if err != nil {
		t.Errorf("%s: %v: %.600s", kind.Name(), err, body)
	}
}
