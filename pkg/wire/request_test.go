package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/vmihailenco/msgpack/v5"
)

// A request may come without a job's id, and is otherwise held to what a model message is held to.
func TestRequestWithoutJob(t *testing.T) {
	pack := func(fields map[string]any) []byte {
		fields["t"], fields["v"], fields["uai"], fields["queries"] = "model", 1, "MARKOV", []any{map[string]any{}}
		b, err := msgpack.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	made := func() string { return "made" }
	for want, b := range map[string][]byte{
		"made": pack(map[string]any{}), "mine": pack(map[string]any{"job": "mine"}),
	} {
		var m Model
		if err := DecodeRequest(b, &m, made); err != nil || m.Job != want || m.UAI != "MARKOV" || len(m.Queries) != 1 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	var m Model
	if err := DecodeRequest(pack(map[string]any{"job": ""}), &m, made); err != nil || m.Job != "made" {
		t.Errorf("%+v, %v", m, err)
	}
	for says, b := range map[string][]byte{
		`model.job: wire: invalid message: "a.b"`:                   pack(map[string]any{"job": "a.b"}),
		"model.uai: wire: malformed message":                        {0x83, 0xa1, 't', 0xa5, 'm', 'o', 'd', 'e', 'l', 0xa1, 'v', 1, 0xa3, 'u', 'a', 'i', 1},
		"model.queries: wire: malformed message: required field is": {0x82, 0xa1, 't', 0xa5, 'm', 'o', 'd', 'e', 'l', 0xa1, 'v', 1},
	} {
		if err := DecodeRequest(b, new(Model), made); err == nil || !strings.Contains(err.Error(), says) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := Decode(pack(map[string]any{}), new(Model)); !errors.Is(err, ErrMalformed) {
		t.Errorf("on its stream a model message without job decodes: %v", err)
	}
}

func TestReplies(t *testing.T) {
	encode := func(m Message) []byte {
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	e := btn.ErrorInfo{Code: fault.Deadline}
	a, u, err := DecodeReply(encode(&Answer{Job: "j", Digest: digestA, Status: StatusError, Error: &e}))
	if err != nil || u != nil || a.Job != "j" {
		t.Errorf("%v %v %v", a, u, err)
	}
	a, u, err = DecodeReply(encode(&Unanswered{Job: "j", Digest: digestA, Status: StatusPending, Error: e}))
	if err != nil || a != nil || u.Job != "j" || u.Status != StatusPending {
		t.Errorf("%v %v %v", a, u, err)
	}
	if _, _, err = DecodeReply(encode(&Cancel{Job: "j"})); err == nil || !strings.Contains(err.Error(), `a "cancel" where a "answer" belongs`) {
		t.Error(err)
	}
}

// The same model has the same digest, whichever empty lists its fields have; one entry changes it.
func TestDigestOfGraph(t *testing.T) {
	graph := func(names []string, entry float64) *Graph {
		return &Graph{Model: &ModelBody{Domains: []int{1}, Names: names, Factors: []Factor{{Scope: []int{0}, Table: Tensor{Kind: KindDense, Shape: []int{1}, Data: []float64{entry}}}}}}
	}
	_, want, err := EncodeGraph(graph(nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	b, same, err := EncodeGraph(graph([]string{}, 1))
	if err != nil || same != want || Digest(b) != want {
		t.Errorf("%s %v, want %s", same, err, want)
	}
	var back Graph
	if err := Decode(b, &back); err != nil || back.Model.Factors[0].Table.Data[0] != 1 {
		t.Errorf("%+v %v", back, err)
	}
	if _, other, _ := EncodeGraph(graph(nil, 2)); other == want {
		t.Error("another entry, and the same digest")
	}
	if _, _, err := EncodeGraph(&Graph{}); fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
}
