package message

import (
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Models may be larger than what stages send each other.
func TestBoundsOfMessages(t *testing.T) {
	long := strings.Repeat(" ", wire.MaxMessage)
	b, err := wire.Encode(&wire.Request{Job: "a", Text: long, Queries: []query.Query{{}}})
	if err != nil || len(b) <= wire.MaxMessage {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var m wire.Request
	if err := wire.Decode(b, &m); err != nil || m.Text != long {
		t.Errorf("a model of %d bytes: %v", len(b), err)
	}
	n := &Network{
		Job:     "a",
		Digest:  digestA,
		Blob:    digestB,
		Queries: []query.Query{{EvidenceFile: long}},
	}
	if _, err := wire.Encode(n); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("a network message of 64 MiB: %v", err)
	}
	if err := wire.Decode(b, &Network{}); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("64 MiB where a network message belongs: %v", err)
	}
	if err := codec.Scan(b, wire.MaxModel); err != nil {
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
