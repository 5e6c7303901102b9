package circuit_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
)

func TestBytesAndBack(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 11))
		d := draw(t, rng)
		w := d.weigh(rng, 5000)
		b := d.circuit.Append(nil)
		again, err := circuit.Decode(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Append(nil), b) {
			t.Fatalf("seed %d: other bytes", seed)
		}
		one, err := d.circuit.Evaluate(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := again.Evaluate(ctx, w); err != nil || one != two {
			t.Fatalf("seed %d: %v, and %v from its bytes, %v", seed, one, two, err)
		}
	}
}

// TestBrokenBytesAreRefused: a byte more or less, and any other one in the place of each, is an error or another circuit.
func TestBrokenBytesAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 12))
	b := draw(t, rng).circuit.Append(nil)
	for n := range b {
		if _, err := circuit.Decode(t.Context(), b[:n]); !errors.Is(err, circuit.ErrCircuit) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
		for range 20 {
			broken := bytes.Clone(b)
			broken[n] ^= byte(1 + rng.IntN(255))
			c, err := circuit.Decode(t.Context(), broken)
			switch {
			case err != nil && !errors.Is(err, circuit.ErrCircuit):
				t.Errorf("byte %d: %v", n, err)
			case err == nil && !bytes.Equal(c.Append(nil), broken):
				t.Errorf("byte %d: read as a circuit of other bytes", n)
			}
		}
	}
	if _, err := circuit.Decode(t.Context(), append(bytes.Clone(b), 0)); !errors.Is(err, circuit.ErrCircuit) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestLongIntegersAreRefused: a circuit has one form.
func TestLongIntegersAreRefused(t *testing.T) {
	short := []byte{1, 1, 1, 0, 1, 0} // the leaf of a variable of one value
	if _, err := circuit.Decode(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	for n := range short {
		long := append(bytes.Clone(short[:n]), short[n]|0x80, 0)
		if _, err := circuit.Decode(t.Context(), append(long, short[n+1:]...)); !errors.Is(err, circuit.ErrCircuit) {
			t.Errorf("integer %d in two bytes: %v", n, err)
		}
	}
}

// TestFewBytesTakeLittleMemory: lists that claim to be long.
func TestFewBytesTakeLittleMemory(t *testing.T) {
	long := []byte{0xff, 0xff, 0xff, 0xff, 0x03}
	one := []byte{1, 1, 2}
	for name, b := range map[string][]byte{
		"variables": append([]byte{1}, long...),
		"a domain":  append([]byte{1, 1}, append(long, 0, 0, 0)...),
		"numbers":   append(bytes.Clone(one), long...),
		"nodes":     append(append(bytes.Clone(one), 0, 5), long...),
		"children":  append(append(bytes.Clone(one), 0, 5, 1), append(long, 1, 1)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := circuit.Decode(t.Context(), b)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, circuit.ErrCircuit) || took > 1<<20 {
			t.Errorf("%s: %v, %d bytes", name, err, took)
		}
	}
}

// TestDecodingStops: a reader that is called off returns the context's error, in the middle of the nodes.
func TestDecodingStops(t *testing.T) {
	b := circuit.NewBuilder([]int{1 << 14, 2}, 0)
	sum := []circuit.Node{}
	for a := range 1 << 14 {
		sum = append(sum, b.Product(b.Leaf(0, a), b.SumOfValues(1, nil)))
	}
	c, err := b.Finish(t.Context(), b.Sum(sum...))
	if err != nil {
		t.Fatal(err)
	}
	form := c.Append(nil)
	if _, err := circuit.Decode(t.Context(), form); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := circuit.Decode(ctx, form); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context was cancelled", err)
	}
	of := &circuit.Compiled{Form: form}
	if _, err := of.Circuit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context was cancelled", err)
	}
	if again, err := of.Circuit(t.Context()); err != nil || again.Edges() != c.Edges() {
		t.Errorf("after that it is not read: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 1, 2, 0, 3, 1, 4, 2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := circuit.Decode(t.Context(), b)
		if err != nil {
			return
		}
		if !bytes.Equal(c.Append(nil), b) {
			t.Fatal("other bytes")
		}
		if _, _, err := c.Marginals(ctx, c.UnitWeights()); err != nil {
			t.Fatal(err)
		}
	})
}
