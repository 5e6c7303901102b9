package message

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sync"
)

// NumericKind returns a hash over a fixed set of computed results, in 16 hexadecimal digits, which identifies the
// arithmetic of this program on this processor. Partials of different kinds are never summed, because their last bits
// may differ: compilers fuse x·y+z on some processors, and functions like math.Exp choose their algorithm by the
// processor's features.
var NumericKind = sync.OnceValue(func() string {
	h := sha256.New()
	var b [8]byte
	for _, x := range numericResults(numericInputs) {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
})

// numericInputs is a variable so that the results are computed where the program runs, and not by
// the compiler.
var numericInputs = []float64{
	0.1,
	1.0 / 3,
	0.7,
	1e-3,
	1.1,
	math.Pi,
	17.3,
	123.456,
	1e8 + 1.0/7,
	3.0000000000000004,
}

// numericResults evaluates sums, products, roots, expressions whose bits tell a fused x·y+z from
// two roundings, and the elementary functions.
//
//go:noinline
func numericResults(inputs []float64) []float64 {
	var results []float64
	dot := 0.0
	chain := 1.0
	for i, x := range inputs {
		y := inputs[(i+3)%len(inputs)]
		dot += x * y
		chain = chain*x + y
		results = append(
			results,
			x+y,
			x*y,
			x/y,
			math.Sqrt(x*y),
			x*x-y*y,
			x*y-float64(x*y), // the second is 0 unless fused
			math.Exp(-x/8),
			math.Log(x),
			math.Log1p(x),
			math.Expm1(x/64),
			math.Log2(x),
			math.Log10(x),
			math.Pow(x, 0.37),
			math.Sin(x),
			math.Cos(y),
			math.Tanh(x),
			math.Hypot(x, y),
		)
	}
	return append(results, dot, chain)
}
