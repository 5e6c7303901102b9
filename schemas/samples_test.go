package schemas_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/basetensor/basetensor/schemas"
)

// compiler knows all schemas under their $id; nothing is fetched.
func compiler(t *testing.T) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertContent()
	for _, p := range schemas.Paths() {
		b, err := schemas.FS.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if id := doc.(map[string]any)["$id"]; id != schemas.Base+p {
			t.Errorf("%s: its $id is %v", p, id)
		}
		if err := c.AddResource(schemas.Base+p, doc); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestSchemasCompile(t *testing.T) {
	c := compiler(t)
	if n := len(schemas.Paths()); n < len(messages)+2 {
		t.Errorf("%d schemas for %d messages, what they share and the result", n, len(messages))
	}
	for _, p := range schemas.Paths() {
		if _, err := c.Compile(schemas.Base + p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// messages are all messages of version 1.
var messages = []func() wire.Message{
	func() wire.Message { return new(wire.Request) },
	func() wire.Message { return new(message.Network) },
	func() wire.Message { return new(message.Task) },
	func() wire.Message { return new(message.Partial) },
	func() wire.Message { return new(wire.Answer) },
	func() wire.Message { return new(wire.Progress) },
	func() wire.Message { return new(wire.Cancel) },
	func() wire.Message { return new(wire.Deadline) },
	func() wire.Message { return new(message.DeadLetter) },
	func() wire.Message { return new(message.Redrive) },
	func() wire.Message { return new(message.End) },
	func() wire.Message { return new(message.Room) },
	func() wire.Message { return new(message.Serves) },
	func() wire.Message { return new(message.Here) },
	func() wire.Message { return new(wire.Graph) },
	func() wire.Message { return new(wire.Unanswered) },
}

// sample is an invalid sample, with the verdicts of the codec and the schema. A schema without a verdict (null) cannot
// see the fault: lengths that do not agree, order, references between fields.
type sample struct {
	Codec   string
	Schema  *string
	Message json.RawMessage
}

func samples(t *testing.T, name string) map[string][]byte {
	t.Helper()
	files, err := fs.Glob(schemas.FS, "samples/"+name+"/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[f], err = schemas.FS.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func validate(t *testing.T, s *jsonschema.Schema, doc []byte) error {
	t.Helper()
	x, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(x)
}

// decode takes a sample to msgpack and through the codec.
func decode(t *testing.T, m wire.Message, doc []byte) error {
	t.Helper()
	b, err := codec.FromView(m, doc)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Decode(b, m)
}

func TestSamplesOfMessages(t *testing.T) {
	c := compiler(t)
	for _, fresh := range messages {
		name := fresh().Name()
		schema, err := c.Compile(schemas.Base + "messages/" + name + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		valid, invalid := 0, 0
		for file, doc := range samples(t, name) {
			if strings.HasPrefix(path.Base(file), "valid-") {
				valid++
				checkValid(t, file, schema, fresh, doc)
				continue
			}
			invalid++
			var s sample
			if err := json.Unmarshal(doc, &s); err != nil || s.Codec == "" {
				t.Fatalf("%s: %v", file, err)
			}
			if err := decode(t, fresh(), s.Message); err == nil || !strings.Contains(err.Error(), s.Codec) {
				t.Errorf("%s: the codec says %v, want %q", file, err, s.Codec)
			}
			err := validate(t, schema, s.Message)
			switch {
			case s.Schema == nil && err != nil:
				t.Errorf("%s: the schema does see it: %v", file, err)
			case s.Schema != nil && (err == nil || !strings.Contains(err.Error(), *s.Schema)):
				t.Errorf("%s: the schema says %v, want %q", file, err, *s.Schema)
			}
		}
		if valid == 0 || invalid == 0 {
			t.Errorf("%s: %d valid and %d invalid samples", name, valid, invalid)
		}
	}
}

// checkValid: the sample passes the schema and the codec, and so does the codec's output of it.
func checkValid(t *testing.T, file string, schema *jsonschema.Schema, fresh func() wire.Message, doc []byte) {
	t.Helper()
	if err := validate(t, schema, doc); err != nil {
		t.Errorf("%s: schema: %v", file, err)
	}
	m := fresh()
	if err := decode(t, m, doc); err != nil {
		t.Errorf("%s: codec: %v", file, err)
		return
	}
	b, err := wire.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	view, err := codec.View(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema, view); err != nil {
		t.Errorf("%s: encoded again: schema: %v", file, err)
	}
	again := fresh()
	if err := decode(t, again, view); err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("%s: encoded again: %v\n%+v\n%+v", file, err, again, m)
	}
}

func TestSamplesOfResults(t *testing.T) {
	schema, err := compiler(t).Compile(schemas.Base + "result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for file, doc := range samples(t, "result") {
		if strings.HasPrefix(path.Base(file), "valid-") {
			if err := validate(t, schema, doc); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			var r query.Result // the decoded result prints the same
			d := json.NewDecoder(bytes.NewReader(doc))
			d.DisallowUnknownFields()
			if err := d.Decode(&r); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			printed, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if json.Unmarshal(printed, &got) != nil || json.Unmarshal(doc, &want) != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s prints as %s", file, printed)
			}
			continue
		}
		var s sample
		if err := json.Unmarshal(doc, &s); err != nil || s.Schema == nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := validate(t, schema, s.Message); err == nil || !strings.Contains(err.Error(), *s.Schema) {
			t.Errorf("%s: the schema says %v, want %q", file, err, *s.Schema)
		}
	}
}
