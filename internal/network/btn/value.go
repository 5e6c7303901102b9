package btn

// Values: the results of contracting a part.

import (
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Value is the contraction of one component.
type Value struct {
	Z     scaled.Number `msgpack:"z"` // Z(T^Q), the network's Scale included
	Flops float64       `msgpack:"f"` // multiplications and additions it took
	// Marginals are there when they were asked for.
	Marginals *Marginals `msgpack:"m,omitempty"`
	// Joint is the unnormalised joint marginal of a set of variables where one was asked for:
	// Domains are the set's, Mant has a cell per combination of values, the last variable
	// fastest, and the cells add up to Z.
	Joint *Marginals `msgpack:"j,omitempty"`
	// Derivatives are ∂Z by the parameters of the cores, where they were asked for.
	Derivatives *Derivatives `msgpack:"d,omitempty"`
	// Target is the value and the derivatives with one more observation, where a sensitivity was
	// asked for.
	Target *TargetValue `msgpack:"s,omitempty"`
	// Found and Drawn are there for descents: the assignment that was asked for, nil where none is
	// possible, and those drawn.
	Found *Found `msgpack:"a,omitempty"`
	Drawn *Drawn `msgpack:"w,omitempty"`
	// Conflict is which observations contradict each other, where that was asked for, Z is 0, and it was found out.
	Conflict *query.Conflict `msgpack:"k,omitempty"`
	// Why says why Z is 0, where the zeros of the network show that it is: what contradicts each other, in words.
	Why string `msgpack:"n,omitempty"`
	// Cases is there for cases: Z is the product of theirs to the power of their weights.
	Cases *CasesValue `msgpack:"y,omitempty"`
	// Truncation and Region are there for components of those classes.
	// Z of a region component is Z_BP.
	Truncation *Truncation `msgpack:"t,omitempty"`
	Region     *RegionPart `msgpack:"r,omitempty"`
	// Weights are there for sampled components: Z is their mean.
	Weights *Weights `msgpack:"p,omitempty"`
	// Bound is there for bounds, which have no Z.
	Bound *BoundValue `msgpack:"b,omitempty"`
	// Digits is the number of decimal digits of Z that cancelled among terms
	// of both signs inside the contraction: log10 of Σ|terms| over |Z|.
	Digits float64 `msgpack:"g,omitempty"`
	// Rounding bounds the error of Z, by rounding and by what the part is off on paper; nil: nothing is known of it.
	Rounding *scaled.Number `msgpack:"e,omitempty"`
	// Doubt says why Z is not known to be exact although
	// every step is exact on paper; empty where it is.
	Doubt string `msgpack:"o,omitempty"`
}

// Marginals are the unnormalised marginals of every variable of a network, or of targets in sequence,
// for one component or summed over several:
//
//	M_v(a) = w_v(a) ∂Z/∂w_v(a) = Mant[offset(v) + a] · 2^Exp,   Σ_a M_v(a) = Z for every v
//
// with offset(v) the sum of the domains of the variables before
// v. They add up over components with the weights α (Lemma 5).
type Marginals struct {
	Domains []int     `msgpack:"d"` // of every variable
	Mant    []float64 `msgpack:"m"` // Σ Domains entries
	Exp     int64     `msgpack:"e"`
}

// Of returns the marginals of some variables, in their sequence; nil: of all.
func (m *Marginals) Of(targets []int) *Marginals {
	if targets == nil || m == nil {
		return m
	}
	begin := make([]int, len(m.Domains))
	at := 0
	for v, d := range m.Domains {
		begin[v] = at
		at += d
	}
	cut := &Marginals{Domains: make([]int, len(targets)), Exp: m.Exp}
	for i, v := range targets {
		d := m.Domains[v]
		cut.Domains[i] = d
		cut.Mant = append(cut.Mant, m.Mant[begin[v]:begin[v]+d]...)
	}
	return cut
}

// Derivatives are ∂Z/∂θ by all parameters of all cores, grouped by core, the cores in their
// sequence: Mant[k]·2^Exp[k]. They add up over components with the weights α (Lemma 5).
type Derivatives struct {
	Sizes []int     `msgpack:"d"` // parameters of every core
	Mant  []float64 `msgpack:"m"`
	Exp   []int64   `msgpack:"e"`
}

// NewDerivatives writes numbers as derivatives by the parameters of cores of these sizes.
func NewDerivatives(sizes []int, by []scaled.Number) *Derivatives {
	d := &Derivatives{Sizes: sizes, Mant: make([]float64, len(by)), Exp: make([]int64, len(by))}
	for k, x := range by {
		if !x.IsZero() {
			d.Mant[k] = x.Mant
			d.Exp[k] = x.Exp
		}
	}
	return d
}

// Number returns derivative k.
func (d *Derivatives) Number(k int) scaled.Number { return scaled.Make(d.Mant[k], d.Exp[k]) }

// TargetValue is a value with one more observation, the target of a sensitivity.
type TargetValue struct {
	Z           scaled.Number `msgpack:"z"`
	Derivatives *Derivatives  `msgpack:"d"`
}

// CasesValue sums up cases.
type CasesValue struct {
	Ln         float64     `msgpack:"n"`           // Σ weight · ln Z, nats
	Gradients  [][]float64 `msgpack:"g,omitempty"` // of Ln by the parameters of every core, where they were asked for
	Impossible int         `msgpack:"i,omitempty"` // 0, or 1 + the position of the first case whose Z is 0: the others count for nothing
}

// ClosedFormRounding bounds the total error of a closed form's cores, relative to the sums of
// the absolute values of their terms and in units of 2^-53: 1e-13, and a few roundings a core
// and a leg.
func ClosedFormRounding(net *Network) float64 {
	return float64(1<<10 + 4*len(net.Cores) + 4*len(net.Dims))
}

// Truncation is the report of a component of truncated legs beside its value.
type Truncation struct {
	Bond int `msgpack:"b"` // largest dimension that a leg kept
	// largest Σ s²_dropped / Σ s² of one truncation: no error bar
	Discarded float64 `msgpack:"d"`
	Truncated bool    `msgpack:"t"` // something above rounding was dropped
	Bytes     float64 `msgpack:"m"` // peak of live tables
	// bound of the error of Z by rounding where terms of both signs may cancel; nil: they have one sign
	Rounding *scaled.Number `msgpack:"e,omitempty"`
}

// RegionPart is the part of a region estimate that one component is:
// the regions From ≤ r < To of a slice.
type RegionPart struct {
	LnBethe float64       `msgpack:"z"` // ln Z_BP of the slice, nats
	LnSum   float64       `msgpack:"s"` // Σ_r α_r (ln Z_r − ln Z_BP)
	Linear  scaled.Number `msgpack:"l"` // Σ_r α_r (Z_r/Z_BP − 1)
	Regions int64         `msgpack:"n"`
	// regions left out because Z_r/Z_BP came out at or below 0
	NonPositive int64   `msgpack:"e,omitempty"`
	Widest      float64 `msgpack:"w"`           // log2 of the largest table
	Converged   bool    `msgpack:"c,omitempty"` // belief propagation reached a fixed point
}
