package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// Models may be larger than what stages send each other.
func TestBoundsOfMessages(t *testing.T) {
	long := strings.Repeat(" ", MaxMessage)
	b, err := Encode(&Model{Job: "a", UAI: long, Queries: []query.Query{{}}})
	if err != nil || len(b) <= MaxMessage {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var m Model
	if err := Decode(b, &m); err != nil || m.UAI != long {
		t.Errorf("a model of %d bytes: %v", len(b), err)
	}
	n := &Network{Job: "a", Digest: digestA, Blob: digestB, Queries: []query.Query{{EvidenceFile: long}}}
	if _, err := Encode(n); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a network message of 64 MiB: %v", err)
	}
	if err := Decode(b, &Network{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("64 MiB where a network message belongs: %v", err)
	}
	if err := Scan(b, MaxModel); err != nil {
		t.Error(err)
	}
}

// A network of a million pieces is read into a few large lists, and written from none of its own.
func TestAllocationsPerPiece(t *testing.T) {
	const n = 5000
	net := chainNetwork(n)
	b, err := EncodeNetwork(net)
	if err != nil {
		t.Fatal(err)
	}
	pieces := float64(len(net.Cores) + len(net.Links))
	if per := testing.AllocsPerRun(3, func() { EncodeNetwork(net) }) / pieces; per > 0.1 {
		t.Errorf("%.2f allocations per piece written", per)
	}
	if per := testing.AllocsPerRun(3, func() { DecodeNetwork(b) }) / pieces; per > 0.1 {
		t.Errorf("%.2f allocations per piece read", per)
	}
}

// What is written in chunks is what was written.
func TestChunksJoin(t *testing.T) {
	var c chunks
	var want strings.Builder
	for k := range 300 {
		text := strings.Repeat(string(rune('a'+k%26)), k*k%7001)
		c.Write([]byte(text))
		c.WriteByte('.')
		want.WriteString(text + ".")
	}
	if got := c.join(); string(got) != want.String() || cap(got) != len(got) {
		t.Errorf("%d bytes of %d, room for %d", len(got), want.Len(), cap(got))
	}
}
