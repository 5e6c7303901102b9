package circuit_test

// Random circuits, each with the function of the tensor that it stands for.

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

var ctx = context.Background()

// entry is the tensor of a circuit, entry by entry.
type entry func(x []int) *big.Float

// piece is a node and the tensor that it stands for.
type piece struct {
	node circuit.Node
	at   entry
}

// drawn is a random circuit.
type drawn struct {
	domains []int
	at      entry
	circuit *circuit.Circuit
}

func exactly(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }

// draw builds a circuit over up to six variables from decisions, products and earlier pieces.
func draw(t *testing.T, rng *rand.Rand) drawn {
	t.Helper()
	d := drawn{}
	for range 1 + rng.IntN(6) {
		d.domains = append(d.domains, 1+rng.IntN(3))
	}
	b := circuit.NewBuilder(d.domains, 0)
	made := map[uint]piece{}
	root := over(b, rng, d.domains, uint(1)<<len(d.domains)-1, made)
	d.at = root.at
	var err error
	if d.circuit, err = b.Finish(context.Background(), root.node); err != nil {
		t.Fatal(err)
	}
	return d
}

// over returns a piece over a set of variables.
func over(b *circuit.Builder, rng *rand.Rand, domains []int, set uint, made map[uint]piece) piece {
	if p, ok := made[set]; ok && rng.IntN(3) > 0 {
		return p
	}
	var vars []int
	for v := range domains {
		if set>>v&1 == 1 {
			vars = append(vars, v)
		}
	}
	left := set & uint(rng.Uint64())
	var p piece
	if left != 0 && left != set && rng.IntN(2) == 0 {
		one, two := over(b, rng, domains, left, made), over(b, rng, domains, set&^left, made)
		p = piece{b.Product(one.node, two.node), func(x []int) *big.Float { return new(big.Float).Mul(one.at(x), two.at(x)) }}
	} else {
		p = decision(b, rng, domains, set, vars[rng.IntN(len(vars))], made)
	}
	made[set] = p
	return p
}

// decision returns a sum over the values of a variable, some of them impossible, each with a number.
func decision(b *circuit.Builder, rng *rand.Rand, domains []int, set uint, v int, made map[uint]piece) piece {
	var children []circuit.Node
	parts := make([]entry, domains[v])
	for a := range domains[v] {
		parts[a] = func([]int) *big.Float { return exactly(0) }
		if rng.IntN(5) == 0 {
			continue
		}
		w := math.Ldexp(math.Round(1+7*rng.Float64()), rng.IntN(7)-3)
		rest := piece{circuit.One, func([]int) *big.Float { return exactly(1) }}
		if set != 1<<v {
			rest = over(b, rng, domains, set&^(1<<v), made)
		}
		children = append(children, b.Product(b.Leaf(v, a), b.Number(scaled.FromFloat(w)), rest.node))
		parts[a] = func(x []int) *big.Float { return new(big.Float).Mul(exactly(w), rest.at(x)) }
	}
	return piece{b.Sum(children...), func(x []int) *big.Float { return parts[x[v]](x) }}
}

// weigh returns random weights, some of them 0.
func (d drawn) weigh(rng *rand.Rand, span int) circuit.Weights {
	w := d.circuit.UnitWeights()
	for i := range w {
		if w[i] = scaled.Make(1+rng.Float64(), int64(rng.IntN(2*span+1)-span)); rng.IntN(8) == 0 {
			w[i] = scaled.Number{}
		}
	}
	return w
}

// terms calls f with every assignment and its term.
func (d drawn) terms(w circuit.Weights, f func(x []int, term *big.Float)) {
	oracle.Each(d.domains, func(x []int) {
		term := new(big.Float).SetPrec(300).Set(d.at(x))
		for v, a := range x {
			l := w[d.circuit.FirstWeight(v)+a]
			term.Mul(term, new(big.Float).SetMantExp(exactly(l.Mant), int(l.Exp)))
		}
		f(x, term)
	})
}

// near fails unless got is want up to rounding.
func near(t *testing.T, what string, got scaled.Number, want *big.Float) {
	t.Helper()
	if want.Sign() == 0 != got.IsZero() {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	if want.Sign() == 0 {
		return
	}
	ratio := new(big.Float).Quo(new(big.Float).SetMantExp(exactly(got.Mant), int(got.Exp)), want)
	if q, _ := ratio.Float64(); !(math.Abs(q-1) < 1e-13) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}
