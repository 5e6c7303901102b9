package message

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/vmihailenco/msgpack/v5"
)

func seedHostile(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.bytes)
	}
}

// fuzzMessage: whatever decodes, encodes; and the bytes of that are a fixed point.
func fuzzMessage(f *testing.F, m wire.Message) {
	seedHostile(f)
	for _, s := range sampleMessages() {
		b, err := wire.Encode(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		first := empty(m)
		if wire.Decode(b, first) != nil {
			return
		}
		once, err := wire.Encode(first)
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		second := empty(m)
		if err := wire.Decode(once, second); err != nil {
			t.Fatalf("encoded, but not decoded: %v", err)
		}
		if twice, err := wire.Encode(second); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q (%v)", once, twice, err)
		}
		if _, err := codec.View(once); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzModel(f *testing.F)      { fuzzMessage(f, new(wire.Request)) }
func FuzzNetwork(f *testing.F)    { fuzzMessage(f, new(Network)) }
func FuzzTask(f *testing.F)       { fuzzMessage(f, new(Task)) }
func FuzzPartial(f *testing.F)    { fuzzMessage(f, new(Partial)) }
func FuzzAnswer(f *testing.F)     { fuzzMessage(f, new(wire.Answer)) }
func FuzzProgress(f *testing.F)   { fuzzMessage(f, new(wire.Progress)) }
func FuzzCancel(f *testing.F)     { fuzzMessage(f, new(wire.Cancel)) }
func FuzzDeadline(f *testing.F)   { fuzzMessage(f, new(wire.Deadline)) }
func FuzzDeadLetter(f *testing.F) { fuzzMessage(f, new(DeadLetter)) }
func FuzzRoom(f *testing.F)       { fuzzMessage(f, new(Room)) }
func FuzzServes(f *testing.F)     { fuzzMessage(f, new(Serves)) }
func FuzzHere(f *testing.F)       { fuzzMessage(f, new(Here)) }
func FuzzEnd(f *testing.F)        { fuzzMessage(f, new(End)) }
func FuzzRedrive(f *testing.F)    { fuzzMessage(f, new(Redrive)) }
func FuzzGraph(f *testing.F)      { fuzzMessage(f, new(wire.Graph)) }
func FuzzUnanswered(f *testing.F) { fuzzMessage(f, new(wire.Unanswered)) }

// fuzzBlob is fuzzMessage for a pair of blob functions.
func fuzzBlob[T any](
	f *testing.F, sample func(random) T, encode func(T) ([]byte, error),
	decode func([]byte) (T, error),
) {
	seedHostile(f)
	for seed := range uint64(20) {
		b, err := encode(sample(random{rand.New(rand.NewPCG(seed, 2))}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := decode(b)
		if err != nil {
			return
		}
		once, err := encode(first)
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		second, err := decode(once)
		if err != nil {
			t.Fatalf("encoded, but not decoded: %v", err)
		}
		if twice, err := encode(second); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q (%v)", once, twice, err)
		}
	})
}

func FuzzNetworkBlob(f *testing.F) {
	fuzzBlob(f, random.network, EncodeNetwork, DecodeNetwork)
}

func FuzzPlanBlob(f *testing.F) {
	fuzzBlob(f, random.samplePlan, EncodePlan, DecodePlan)
}

func FuzzAssignmentsBlob(f *testing.F) {
	fuzzBlob(f, random.sampleAssignments, EncodeAssignments, DecodeAssignments)
}

// FuzzScan: what the scan lets pass, the library can read; so the scan is no weaker than the
// format.
func FuzzScan(f *testing.F) {
	seedHostile(f)
	for _, s := range sampleMessages() {
		b, err := wire.Encode(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if codec.Scan(b, 1<<20) != nil {
			return
		}
		r := bytes.NewReader(b)
		if err := msgpack.NewDecoder(r).Skip(); err != nil || r.Len() != 0 {
			t.Fatalf("scanned, but the library says %v with %d bytes left", err, r.Len())
		}
	})
}

func FuzzParseSubject(f *testing.F) {
	for _, s := range []string{
		"btn.v1.model.3.job", "btn.v1.task.0.a.2.1", "btn.v1.dlq.learn.a", "btn.v1.model.03.job", "btn.v1.answer.*",
		"btn.v1.", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParseSubject(s); err == nil && p.String() != s {
			t.Fatalf("%q parses to %+v, which is %q", s, p, p)
		}
	})
}
