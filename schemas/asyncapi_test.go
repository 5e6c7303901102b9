package schemas_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/basetensor/basetensor/schemas"
)

// The document names every kind of subject, in the form that the program writes and reads; all its references lead
// somewhere. (It is read as lines: they are regular, and a YAML library for one test is not worth its weight.)
func TestAsyncAPI(t *testing.T) {
	b, err := schemas.FS.ReadFile("asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	if !strings.Contains(doc, "\nasyncapi: 3.0.0\n") {
		t.Error("not AsyncAPI 3.0.0")
	}
	digest := wire.Digest(nil)
	fill := strings.NewReplacer("{lane}", "3", "{job}", "job-1", "{n}", "5", "{k}", "4", "{stage}", "learn",
		"{owner}", "_", "{digest}", digest)
	documented := map[message.Kind]bool{}
	for _, m := range regexp.MustCompile(`(?m)^    address: (\S+)$`).FindAllStringSubmatch(doc, -1) {
		if m[1] == "null" { // a reply's, chosen by the requester
			continue
		}
		s, err := message.ParseSubject(fill.Replace(m[1]))
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		if documented[s.Kind] {
			t.Errorf("%s: twice", m[1])
		}
		documented[s.Kind] = true
	}
	for _, k := range []message.Kind{message.KindModel, message.KindNetwork, message.KindTask,
		message.KindPartial, message.KindFirst, message.KindAnswer, message.KindDone, message.KindProgress,
		message.KindCancel, message.KindTimer, message.KindDeadline, message.KindRedrive, message.KindEnd, message.KindDLQ,
		message.KindBlob, message.KindGraph, message.KindInfer, message.KindServes, message.KindHere} {
		if !documented[k] {
			t.Errorf("no channel for %s", message.Filter(k))
		}
	}
	for _, m := range messages {
		if ref := "$ref: messages/" + m().Name() + ".schema.json\n"; strings.Count(doc, ref) != 1 {
			t.Errorf("%d of %q", strings.Count(doc, ref), ref)
		}
	}
	for _, m := range regexp.MustCompile(`\$ref: '?([^'\n]+)'?`).FindAllStringSubmatch(doc, -1) {
		section, name, inside := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(m[1], "#/components/"), "#/"), "/")
		if !strings.HasPrefix(m[1], "#/") {
			if _, err := schemas.FS.ReadFile(m[1]); err != nil {
				t.Error(err)
			}
			continue
		}
		defined := regexp.MustCompile(`(?ms)^ *` + section + `:\n.*?^ {2,4}` + regexp.QuoteMeta(name) + `:\n`)
		if !inside || !defined.MatchString(doc) {
			t.Errorf("%s leads nowhere", m[1])
		}
	}
	for _, h := range []string{
		wire.HeaderContentType, wire.HeaderSchema, wire.HeaderSchemaVersion, wire.HeaderJob,
		wire.HeaderDigest, wire.HeaderTenant, wire.HeaderTraceParent, wire.HeaderTraceState,
	} {
		if !strings.Contains(doc, "\n          "+h+":\n") {
			t.Errorf("header %s is not documented", h)
		}
	}
}

func TestMessageFindsItsSchema(t *testing.T) {
	for _, m := range messages {
		if b, err := schemas.Message(m().Name()); err != nil ||
			!strings.Contains(string(b), schemas.Base+"messages/"+m().Name()) {
			t.Error(err)
		}
	}
	if _, err := schemas.Message("nothing"); err == nil || err.Error() != `schemas: no message is called "nothing"` {
		t.Error(err)
	}
}
