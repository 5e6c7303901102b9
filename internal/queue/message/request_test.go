package message

import (
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/vmihailenco/msgpack/v5"
)

// A request may come without a job's id, and is otherwise held to what a model message is held to.
func TestRequestWithoutJob(t *testing.T) {
	request := func(fields map[string]any) []byte {
		fields["t"], fields["v"], fields["text"], fields["queries"] = "model", 1, "MARKOV", []any{
			map[string]any{},
		}
		b, err := msgpack.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	made := func() string { return "made" }
	for want, b := range map[string][]byte{
		"made": request(map[string]any{}), "mine": request(map[string]any{"job": "mine"}),
	} {
		var m wire.Request
		if err := DecodeRequest(b, &m, made); err != nil || m.Job != want || m.Text != "MARKOV" ||
			len(m.Queries) != 1 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	var m wire.Request
	if err := DecodeRequest(request(map[string]any{"job": ""}), &m, made); err != nil ||
		m.Job != "made" {
		t.Errorf("%+v, %v", m, err)
	}
	for says, b := range map[string][]byte{
		`model.job: wire: invalid message: "a.b.c"`: request(map[string]any{"job": "a.b.c"}),
		"model.text: wire: malformed message": {
			0x83, 0xa1, 't', 0xa5, 'm', 'o', 'd', 'e', 'l', 0xa1, 'v', 1, 0xa4, 't', 'e', 'x', 't', 1,
		},
		"model.queries: wire: malformed message: required field is": {
			0x82, 0xa1, 't', 0xa5, 'm', 'o', 'd', 'e', 'l', 0xa1, 'v', 1,
		},
	} {
		if err := DecodeRequest(b, new(wire.Request), made); err == nil ||
			!strings.Contains(err.Error(), says) ||
			fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := wire.Decode(request(map[string]any{}), new(wire.Request)); !errors.Is(
		err, wire.ErrMalformed,
	) {
		t.Errorf("on its stream a model message without job decodes: %v", err)
	}
}
