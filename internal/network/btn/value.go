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
	// Marginals is nil if none were asked for.
	Marginals *Marginals `msgpack:"m,omitempty"`
	// Joint is the unnormalised joint marginal of a set of variables, nil if none was asked for. Its Domains are those of the set.
	// Mant has a cell per combination of values, the last variable fastest. The cells add up to Z.
	Joint *Marginals `msgpack:"j,omitempty"`
	// Derivatives are ∂Z by the parameters of the cores, nil if they were not asked for.
	Derivatives *Derivatives `msgpack:"d,omitempty"`
	// Target is the value and the derivatives with one more observation, nil if no sensitivity was asked for.
	Target *TargetValue `msgpack:"s,omitempty"`
	// Found is the best assignment, if the part was asked for it and one is possible. Drawn are the assignments drawn, if samples were
	// asked for.
	Found *Found `msgpack:"a,omitempty"`
	Drawn *Drawn `msgpack:"w,omitempty"`
	// Conflict lists observations that contradict each other. It is nil if that was not asked for, if Z is not 0, or if the part did not
	// find out.
	Conflict *query.Conflict `msgpack:"k,omitempty"`
	// Why explains in words why Z is 0, if the zeros of the network show it.
	Why string `msgpack:"n,omitempty"`
	// Cases is the value of the cases, nil if none were asked for. Z is then the product over the cases of their Z to the power of their
	// weight.
	Cases *CasesValue `msgpack:"y,omitempty"`
	// Truncation and Region are set by components of truncated legs and of regions. Z of a region component is Z_BP.
	Truncation *Truncation `msgpack:"t,omitempty"`
	Region     *RegionPart `msgpack:"r,omitempty"`
	// Weights are set by sampled components. Z is their mean.
	Weights *Weights `msgpack:"p,omitempty"`
	// Bound is set by bounds, which have no Z.
	Bound *BoundValue `msgpack:"b,omitempty"`
	// Digits is the number of decimal digits of Z that cancelled among terms
	// of both signs inside the contraction: log10 of Σ|terms| over |Z|.
	Digits float64 `msgpack:"g,omitempty"`
	// Rounding bounds the error of Z: that by rounding, and that by which the part differs from B even without rounding. nil: no bound
	// is known.
	Rounding *scaled.Number `msgpack:"e,omitempty"`
	// Doubt explains why Z is not known to be exact although every step is exact on paper. It is empty if there is no doubt.
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

// Select returns the marginals of the targets, in their sequence. If targets is nil, which stands for all variables, it returns m itself.
func (m *Marginals) Select(targets []int) *Marginals {
	if targets == nil || m == nil {
		return m
	}
	begin := make([]int, len(m.Domains)) // by variable: the position of its first value in Mant
	total := 0
	for v, d := range m.Domains {
		begin[v] = total
		total += d
	}
	selected := &Marginals{Domains: make([]int, len(targets)), Exp: m.Exp}
	for i, v := range targets {
		d := m.Domains[v]
		selected.Domains[i] = d
		selected.Mant = append(selected.Mant, m.Mant[begin[v]:begin[v]+d]...)
	}
	return selected
}

// Derivatives are ∂Z/∂θ by all parameters of all cores, core by core in the network's sequence. The k-th is Mant[k]·2^Exp[k].
// They add up over components with the weights α (Lemma 5).
type Derivatives struct {
	Sizes []int     `msgpack:"d"` // by core, the number of its parameters
	Mant  []float64 `msgpack:"m"`
	Exp   []int64   `msgpack:"e"`
}

// NewDerivatives returns numbers, the derivatives by all parameters of all cores in sequence, as Derivatives. sizes has the number of
// parameters of every core.
func NewDerivatives(sizes []int, numbers []scaled.Number) *Derivatives {
	d := &Derivatives{Sizes: sizes, Mant: make([]float64, len(numbers)), Exp: make([]int64, len(numbers))}
	for k, x := range numbers {
		if !x.IsZero() {
			d.Mant[k] = x.Mant
			d.Exp[k] = x.Exp
		}
	}
	return d
}

// Number returns the derivative by parameter k, counted through all cores.
func (d *Derivatives) Number(k int) scaled.Number { return scaled.Make(d.Mant[k], d.Exp[k]) }

// TargetValue is Z and its derivatives with one more observation, the target of a sensitivity.
type TargetValue struct {
	Z           scaled.Number `msgpack:"z"`
	Derivatives *Derivatives  `msgpack:"d"`
}

// CasesValue is the weighted sum of ln Z over cases.
type CasesValue struct {
	Ln        float64     `msgpack:"n"`           // Σ weight · ln Z, nats
	Gradients [][]float64 `msgpack:"g,omitempty"` // of Ln by the parameters of every core; nil if they were not asked for
	// Impossible is 0, or 1 + the position of the first case whose Z is 0. Ln and Gradients mean nothing then.
	Impossible int `msgpack:"i,omitempty"`
}

// ClosedFormRounding returns a bound of the total error of the cores of a closed form, in units of 2^-53 and relative to the sums of
// the absolute values of their terms. It is 1e-13, and four roundings per core and per leg.
func ClosedFormRounding(net *Network) float64 {
	return float64(1<<10 + 4*len(net.Cores) + 4*len(net.Dims))
}

// Truncation is what a component of truncated legs reports in addition to its value.
type Truncation struct {
	Bond int `msgpack:"b"` // largest dimension that a leg kept
	// Discarded is the largest Σ s²_dropped / Σ s² of a single truncation. It is no error bar.
	Discarded float64 `msgpack:"d"`
	Truncated bool    `msgpack:"t"` // something above rounding was dropped
	Bytes     float64 `msgpack:"m"` // peak of live tables
	// Rounding bounds the error of Z by rounding, if terms of both signs may cancel. nil: all terms have one sign.
	Rounding *scaled.Number `msgpack:"e,omitempty"`
}

// RegionPart is the share of one component in a region estimate: the sums over the regions From ≤ r < To of a slice.
type RegionPart struct {
	LnBethe float64       `msgpack:"z"` // ln Z_BP of the slice, nats
	LnSum   float64       `msgpack:"s"` // Σ_r α_r (ln Z_r − ln Z_BP)
	Linear  scaled.Number `msgpack:"l"` // Σ_r α_r (Z_r/Z_BP − 1)
	Regions int64         `msgpack:"n"` // number of regions
	// NonPositive is the number of regions left out because Z_r/Z_BP came out at or below 0.
	NonPositive int64   `msgpack:"e,omitempty"`
	Widest      float64 `msgpack:"w"`           // log2 of the largest table
	Converged   bool    `msgpack:"c,omitempty"` // belief propagation reached a fixed point
}
