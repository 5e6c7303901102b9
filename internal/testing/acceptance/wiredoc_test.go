package acceptance

// docs/reference/wire.md agrees with pkg/wire and schemas/.

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/basetensor/basetensor/schemas"
)

func wireDoc(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/reference/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The printed bytes and digest belong to the message that the document names.
func TestWireDocBytes(t *testing.T) {
	_, block, ok := strings.Cut(wireDoc(t), "### Byte by byte")
	if !ok {
		t.Fatal("no section with bytes")
	}
	var digits strings.Builder
	bytesFirst := regexp.MustCompile(`(?m)^ {4,}((?:[0-9a-f]{2} {1,2})*[0-9a-f]{2}) {2,}\S`)
	for _, line := range bytesFirst.FindAllStringSubmatch(block, -1) {
		digits.WriteString(strings.ReplaceAll(line[1], " ", ""))
	}
	data, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	var m wire.Request
	if err := wire.Decode(data, &m); err != nil {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	if again, err := wire.Encode(&m); err != nil || string(again) != string(data) || len(data) != 128 {
		t.Errorf("%d bytes are not the ones that pkg/wire writes: %x, %v", len(data), again, err)
	}
	digest, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{digest, wire.ModelSubject(wire.Lane(m.Tenant), m.Job)} {
		if !strings.Contains(block, "`"+want+"`") {
			t.Errorf("it is %s, which is not there", want)
		}
	}
	if r := computed(t, m)[0]; r.Marginals[0].P[1] != 0.75 {
		t.Errorf("%+v", r)
	}
}

// Every field, value, header, stream and subject that a client meets is named.
func TestWireDocNamesEverything(t *testing.T) {
	doc := wireDoc(t)
	want := []string{
		wire.HeaderContentType, wire.HeaderSchema, wire.HeaderSchemaVersion, wire.HeaderJob, wire.HeaderDigest,
		wire.HeaderTenant,
		wire.HeaderTraceParent, wire.HeaderTraceState, wire.ContentType, bus.StreamModel,
		bus.StreamAnswer, bus.StreamControl,
		bus.StreamDeadline, bus.StreamBlob, "btn.v1.model.<lane>.<job>", "btn.v1.answer.<job>",
		"btn.v1.done.<job>", "btn.v1.progress.<job>",
		"btn.v1.cancel.<job>", "btn.v1.timer.<lane>.<job>", "btn.v1.blob.<owner>.<digest>", "btn.v1.graph.<owner>.<digest>",
		wire.InferSubject,
		wire.ReplyBadRequest, wire.ReplyTaken, wire.ReplyFailed, wire.ReplyNoRoom, wire.ReplyPending,
	}
	for _, path := range []string{
		"messages/model", "messages/answer", "messages/cancel", "messages/progress", "messages/deadline",
		"messages/graph", "messages/unanswered",
	} {
		want = append(want, names(schema(t, path+".schema.json"))...)
	}
	common := schema(t, "messages/common.schema.json")["$defs"].(map[string]any)
	for _, def := range []string{
		"modelBody", "tensor", "levels", "term", "scaled", "submittedQuery", "evidence", "settings",
		"errorInfo",
	} {
		want = append(want, names(common[def].(map[string]any))...)
	}
	for _, w := range want {
		if w != "" && !strings.Contains(doc, "`"+w+"`") {
			t.Errorf("docs/reference/wire.md does not name `%s`", w)
		}
	}
	result := map[string]bool{"ok": true}
	fieldsOf(schema(t, "result.schema.json"), result)
	_, answer, _ := strings.Cut(doc, "A result has the keys")
	answer, _, _ = strings.Cut(answer, "| `code` |")
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(answer, -1) {
		if !result[m[1]] {
			t.Errorf("docs/reference/wire.md names `%s`, which no result has", m[1])
		}
	}
}

// fieldsOf adds the names of all fields of a schema, and of those in it.
func fieldsOf(schema any, to map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, one := range s {
			fieldsOf(one, to)
		}
	case map[string]any:
		if fields, ok := s["properties"].(map[string]any); ok {
			for name := range fields {
				to[name] = true
			}
		}
		for _, one := range s {
			fieldsOf(one, to)
		}
	}
}

// The digest has the fields of a query in the order in which pkg/query has them, which the text lists.
func TestWireDocDigestOrder(t *testing.T) {
	_, text, _ := strings.Cut(wireDoc(t), "`terms`; of a query: ")
	text, _, ok := strings.Cut(text, ");")
	if !ok {
		t.Fatal("no list of the fields of a query")
	}
	var listed, want []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		listed = append(listed, m[1])
	}
	of := reflect.TypeFor[query.Query]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("msgpack"), ",")
		want = append(want, name)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/reference/wire.md lists the fields of a query as\n%q, pkg/query has\n%q", listed, want)
	}
}

func schema(t *testing.T, path string) map[string]any {
	t.Helper()
	b, err := schemas.FS.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// names returns the fields of an object and of the objects in it, and the values they may have.
func names(object map[string]any) []string {
	var list []string
	properties, _ := object["properties"].(map[string]any)
	for name, field := range properties {
		list = append(list, name)
		f, _ := field.(map[string]any)
		if values, ok := f["enum"].([]any); ok {
			for _, v := range values {
				list = append(list, v.(string))
			}
		}
		list = append(list, names(f)...)
		if items, ok := f["items"].(map[string]any); ok {
			list = append(list, names(items)...)
		}
	}
	return list
}
