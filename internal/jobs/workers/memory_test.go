package workers

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Intermediate results are dropped only after the last of several tasks.
func TestSharedWhileATaskWorks(t *testing.T) {
	var s sharedResults
	_, endLong := s.startUse()
	_, endShort := s.startUse()
	endShort()
	if s.timer != nil {
		t.Error("to be dropped while a task works")
	}

	endLong()
	if s.timer == nil || !s.timer.Stop() {
		t.Error("not to be dropped after the last task")
	}

	_, end := s.startUse()
	if s.timer.Stop() {
		t.Error("to be dropped while the next task works")
	}
	end()
	if !s.timer.Stop() {
		t.Error("not to be dropped after the next task")
	}
}

// A decoded value that came with the message needs no bus, and is not believed.
func TestDecodedOfAMessage(t *testing.T) {
	calls := 0
	c := newDecodedBlobs(
		func(b []byte) (string, error) { calls++; return strings.ToUpper(string(b)), nil },
	)
	for range 2 {
		v, err := c.get(t.Context(), nil, wire.Digest([]byte("plan")), []byte("plan"))
		if v != "PLAN" || err != nil {
			t.Fatal(v, err)
		}
	}
	if calls != 1 {
		t.Errorf("decoded %d times", calls)
	}

	_, err := c.get(t.Context(), nil, wire.Digest([]byte("another")), []byte("plan"))
	if fault.CodeOf(err) != fault.BadInput {
		t.Error("bytes of another digest:", err)
	}
}
