package compiler

// Digests: what components are recognised by.

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// digest is a component's content in 128 bits: the exclusive or of numbers drawn for its variables, clauses and slices of tables.
// Two different contents fall together with probability 2^-128 over the draw.
type digest [2]uint64

// add adds e, the digest of a part, to the digest of a content, by exclusive or.
func (d *digest) add(e digest) {
	d[0] ^= e[0]
	d[1] ^= e[1]
}

// drawer draws numbers by a cryptographic generator, whose key is a hash of the formula: the same
// formula has the same numbers, and an attacker needs some 2^64 trials to find a formula whose
// numbers collide.
type drawer struct{ source *rand.ChaCha8 }

// newDrawer returns a drawer of random numbers whose key is a hash of the whole problem: the number of Boolean variables, the clauses and
// the tables. Linear time.
func newDrawer(p *problem, clauses [][]lit) drawer {
	hash := sha256.New()
	var bytes []byte
	put := func(numbers ...uint64) {
		for _, x := range numbers {
			bytes = binary.LittleEndian.AppendUint64(bytes, x)
		}
	}
	flush := func() {
		hash.Write(bytes)
		bytes = bytes[:0]
	}

	put(uint64(p.booleans()), uint64(len(clauses)), uint64(len(p.tables)))
	flush()
	for _, c := range clauses {
		put(uint64(len(c)))
		for _, l := range c {
			put(uint64(l))
		}
		flush()
	}
	for _, t := range p.tables {
		put(uint64(len(t.scope)))
		for i, v := range t.scope {
			put(uint64(v), uint64(t.dims[i]))
		}
		for _, x := range t.values {
			put(math.Float64bits(x))
		}
		flush()
	}
	return drawer{rand.NewChaCha8([32]byte(hash.Sum(nil)))}
}

// draw returns the next random number of 128 bits.
func (d drawer) draw() digest { return digest{d.source.Uint64(), d.source.Uint64()} }

// drawAll returns the next n random numbers of 128 bits.
func (d drawer) drawAll(n int) []digest {
	digests := make([]digest, n)
	for i := range digests {
		digests[i] = d.draw()
	}
	return digests
}
