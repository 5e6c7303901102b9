package workers

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A decoded value that came with the message needs no bus, and is not believed.
func TestDecodedOfAMessage(t *testing.T) {
	calls := 0
	c := newDecoded(
		func(b []byte) (string, error) { calls++; return strings.ToUpper(string(b)), nil },
	)
	for range 2 {
		v, err := c.of(t.Context(), nil, wire.Digest([]byte("plan")), []byte("plan"))
		if v != "PLAN" || err != nil {
			t.Fatal(v, err)
		}
	}
	if calls != 1 {
		t.Errorf("decoded %d times", calls)
	}

	_, err := c.of(t.Context(), nil, wire.Digest([]byte("another")), []byte("plan"))
	if fault.CodeOf(err) != fault.BadInput {
		t.Error("bytes of another digest:", err)
	}
}
