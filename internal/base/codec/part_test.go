package codec_test

import (
	"testing"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/vmihailenco/msgpack/v5"
)

func TestPart(t *testing.T) {
	b, err := wire.Encode(&wire.Request{Job: "j", Text: "MARKOV 0 0", Queries: []query.Query{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if err := msgpack.Unmarshal(codec.Part(b, "text"), &text); err != nil || text != "MARKOV 0 0" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bytes := range [][]byte{nil, {0xc0}, {0x81}, b[:len(b)/2], codec.Part(b, "text")} {
		if p := codec.Part(bytes, "model"); p != nil {
			t.Errorf("%x has a part %x", bytes, p)
		}
	}
}
