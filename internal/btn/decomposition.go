package btn

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Class names the parametric class of a component Q = C ∘ R.
type Class string

const (
	ClassRankOne         Class = "rank-one"          // C = 1 (Lemma 2)
	ClassCP              Class = "cp"                // a sum of rank-one terms contracted together (Lemma 2)
	ClassSymmetric       Class = "symmetric"         // C = S, R = 1 (Lemma 3)
	ClassSymmetryRankOne Class = "symmetry-rank-one" // C = S (Lemma 4)
	ClassParts           Class = "parts"             // C = B, a product over the connected parts of the network, each by a decomposition of its own
	ClassBase            Class = "base"              // C = B, contracted exactly along an elimination order
	ClassTruncated       Class = "truncated"         // C = B, R a mask on learned maps: one slice of a rung of truncated legs
	ClassRegion          Class = "region"            // C = B, R a mask in the BP gauge: some regions of a slice of a rung
)

// Component is Q = C ∘ R.
type Component struct {
	Class Class
	S     countspace.Poly // symmetric classes: S over the decomposition's levels
	R     [][]float64     // rank-one, symmetry-rank-one: R[ℓ] has Dims[ℓ] entries; nil means all ones
	CP    *tensor.CP      // class cp: over all legs, in leg order
	Order []int           // class base: indices of the einsum form of the network, in elimination order
	// From and To are the slices of the decomposition's Contraction that a component of class base without Order sums.
	// Of class region: its regions.
	From, To int64
	Rung     int   // classes truncated and region: which rung of the decomposition's Growth
	Slice    int64 // classes truncated and region: digits of the rung's sliced variables, the last one fastest
}

// Tree is how components of class base without Order are contracted: the network, conditioned on the query's
// evidence, is simplified (package preprocess), and what is left is contracted along a tree, slice by slice. A slice fixes
// some indices to one value each: C = B, R the indicator of those values, α = 1 (Lemma 5).
type Tree struct {
	Shape     string `msgpack:"shape"`               // digest of the simplified network's hypergraph: the tree fits no other
	Tables    int    `msgpack:"tables"`              // leaves of the tree
	Merges    []int  `msgpack:"merges"`              // two tables per merge; merge k makes table Tables+k
	Slices    []int  `msgpack:"slices,omitempty"`    // indices fixed per slice
	Count     int64  `msgpack:"count"`               // number of slices, 1 without
	Joint     bool   `msgpack:"joint,omitempty"`     // with one more index over the cells of a joint marginal
	Marginals bool   `msgpack:"marginals,omitempty"` // simplified so that every variable's marginal can be recovered
	// Groups are marginals group by group, where that costs less than all of them at once: there is no tree over the whole then,
	// Count is how many there are, and From and To of a component are groups.
	Groups []MarginalGroup `msgpack:"groups,omitempty"`
}

// MarginalGroup is a contraction of the simplified network that has been simplified once more, for some of its indices.
type MarginalGroup struct {
	Keep    []int  `msgpack:"keep"`             // indices that the simplification keeps
	Indices []int  `msgpack:"indices"`          // those whose marginals are taken from it
	Shape   string `msgpack:"shape"`            // as of Contraction, as are the rest
	Tables  int    `msgpack:"tables"`           //
	Merges  []int  `msgpack:"merges"`           //
	Slices  []int  `msgpack:"slices,omitempty"` //
	Count   int64  `msgpack:"count"`            //
}

// Decomposition is B ≈ Σ_i Alpha[i] Components[i].
type Decomposition struct {
	Method     Method            // exact or symmetry-cp: what was done, never auto
	Levels     countspace.Levels // shared by all symmetric parts; zero value if there are none
	Rotations  [][]float64       // learned orthogonal maps O_ℓ relative to the network's, Dims[ℓ]² row-major; nil entry: identity
	Components []Component
	// Contraction is set where components of class base follow a tree and not an order.
	Contraction *Tree
	// Parts are set for a component of class parts: together they have every link once.
	Parts []Part
	// Growth is set for methods truncated and regions: the value is then not Σ α_i Z_i but what its rungs say.
	Growth   *Growth
	Alpha    []scaled.Number
	Exact    bool    // B = Σ α_i Q^(i) up to rounding, known and not only measured
	Residual float64 // ρ = ‖B−B̃‖²/‖B‖², in [0, 1]; 0 when Exact
	// LnExplained is ln(1−ρ) in nats, computed without forming 1−ρ: on large networks ρ prints as 1 and this does not.
	LnExplained   float64
	LnNormB       float64 // ln ‖B‖ in nats
	LnNormError   float64 // ln ‖B−B̃‖ in nats, −Inf when Exact; what the certificate multiplies
	ConditionGram float64 // condition number of G, 1 for one component
	Plan          Cost
	Warnings      []string
}

// Part is the exact decomposition of one or more connected parts, in the numbering of Network.Sub(Links). It has no Parts itself.
type Part struct {
	Links         []int
	Decomposition *Decomposition
}

// Cost is what an exact contraction takes. Zero for components that need no elimination.
type Cost struct {
	Width     int     `msgpack:"w" json:"width"`                      // largest number of indices in one table of the elimination, less one
	Log2Table float64 `msgpack:"t" json:"log2_table"`                 // log2 of the entries of the largest table
	Flops     float64 `msgpack:"f" json:"flops"`                      // multiplications and additions
	Bytes     float64 `msgpack:"b" json:"peak_bytes"`                 // peak of live tables, 8 bytes an entry
	Slices    float64 `msgpack:"s,omitempty" json:"slices"`           // parts that are contracted apart and added; 0 or 1: one
	Groups    float64 `msgpack:"g,omitempty" json:"groups,omitempty"` // of marginals, each with a contraction of its own; 0: one pass
}

// Method names how a query is answered.
type Method string

const (
	MethodAuto       Method = "auto"        // exact if it fits, else truncated legs, or regions where those do not fit
	MethodExact      Method = "exact"       // C = B, or a closed-form decomposition of B
	MethodSymmetryCP Method = "symmetry-cp" // the paper's learned decomposition
	MethodTruncated  Method = "truncated"   // truncated legs with a growing bond
	MethodRegions    Method = "regions"     // regions in the BP gauge
)

// Settings decide what is learned. The zero value of a field means its default. They are part of the cache key.
type Settings struct {
	Method      Method     `msgpack:"method,omitempty" json:"method,omitempty"`             // default auto
	Components  int        `msgpack:"components,omitempty" json:"components,omitempty"`     // symmetry-cp: rank r, default 4; truncated and regions: most components
	Maps        MapKind    `msgpack:"maps,omitempty" json:"maps,omitempty"`                 // default identity
	Cores       CoreChoice `msgpack:"cores,omitempty" json:"cores,omitempty"`               // default factors
	Seed        uint64     `msgpack:"seed,omitempty" json:"seed,omitempty"`                 // of the starts
	Memory      int64      `msgpack:"memory,omitempty" json:"memory,omitempty"`             // bytes for tables, default 2 GiB
	NonNegative bool       `msgpack:"non_negative,omitempty" json:"non_negative,omitempty"` // α ≥ 0
	LearnMaps   bool       `msgpack:"learn_maps,omitempty" json:"learn_maps,omitempty"`     // Procrustes steps
	Sweeps      int        `msgpack:"sweeps,omitempty" json:"sweeps,omitempty"`             // most joint sweeps, default 20
	Starts      int        `msgpack:"starts,omitempty" json:"starts,omitempty"`             // seeded starts, default 2
	// LearnFlops bounds learning: starts, then sweeps, then components are reduced until it costs no more, with a warning.
	LearnFlops float64 `msgpack:"learn_flops,omitempty" json:"learn_flops,omitempty"` // default 5e10, about a minute
	NoExact    bool    `msgpack:"no_exact,omitempty" json:"no_exact,omitempty"`       // auto does not take the exact way
	Bond       int     `msgpack:"bond,omitempty" json:"bond,omitempty"`               // truncated: the bond to grow to; 0: as far as Budget goes
	Budget     float64 `msgpack:"budget,omitempty" json:"budget,omitempty"`           // truncated and regions: flops of a query's contractions, default 1.8e11
	Accuracy   float64 `msgpack:"accuracy,omitempty" json:"accuracy,omitempty"`       // truncated and regions: nats at which growth ends, default 1e-9
}

// DefaultMemory is the memory budget of a request that names none: 2 GiB.
const DefaultMemory = int64(2) << 30

// DefaultLearnFlops is the work that learning may take unless a request says otherwise.
const DefaultLearnFlops = 5e10

// DefaultComponents is the rank of symmetry-cp unless a request says otherwise.
const DefaultComponents = 4

// DefaultBudget is the work that the contractions of an approximate answer may take unless a request says otherwise.
const DefaultBudget = 1.8e11

// DefaultAccuracy is the stated uncertainty, in nats, at which an approximate answer stops growing.
const DefaultAccuracy = 1e-9

// WithDefaults returns s with every zero field at its default.
func (s Settings) WithDefaults() Settings {
	if s.Method == "" {
		s.Method = MethodAuto
	}
	if s.Components == 0 && s.Method == MethodSymmetryCP {
		s.Components = DefaultComponents
	}
	if s.Maps == "" {
		s.Maps = MapIdentity
	}
	if s.Cores == "" {
		s.Cores = CoresAreFactors
	}
	if s.Memory == 0 {
		s.Memory = DefaultMemory
	}
	if s.Sweeps == 0 {
		s.Sweeps = 20
	}
	if s.Starts == 0 {
		s.Starts = 2
	}
	if s.LearnFlops == 0 {
		s.LearnFlops = DefaultLearnFlops
	}
	if s.Budget == 0 {
		s.Budget = DefaultBudget
	}
	if s.Accuracy == 0 {
		s.Accuracy = DefaultAccuracy
	}
	return s
}

// Value is the contraction of one component.
type Value struct {
	Z     scaled.Number `msgpack:"z"` // Z(T^Q), the network's Scale included
	Flops float64       `msgpack:"f"` // multiplications and additions it took
	// Marginals are there when they were asked for.
	Marginals *Marginals `msgpack:"m,omitempty"`
	// Joint is the unnormalised joint marginal of a set of variables where one was asked for: Domains are those of the set,
	// Mant has a cell per combination of values, the last variable fastest, and the cells add up to Z.
	Joint *Marginals `msgpack:"j,omitempty"`
	// Truncation and Region are there for components of those classes. Z of a region component is Z_BP.
	Truncation *Truncation `msgpack:"t,omitempty"`
	Region     *RegionPart `msgpack:"r,omitempty"`
	// Digits is how many decimal digits of Z cancelled among terms of both signs inside the contraction: log10 of Σ|terms| over |Z|.
	Digits float64 `msgpack:"g,omitempty"`
	// Doubt says why Z is not known to be exact although every step is exact on paper; empty where it is.
	Doubt string `msgpack:"o,omitempty"`
}

// Marginals are the unnormalised marginals of every variable of a network, for one component or summed over several:
//
//	M_v(a) = w_v(a) ∂Z/∂w_v(a) = Mant[offset(v) + a] · 2^Exp,   Σ_a M_v(a) = Z for every v
//
// with offset(v) the sum of the domains of the variables before v. They add up over components with the weights α (Lemma 5).
type Marginals struct {
	Domains []int     `msgpack:"d"` // of every variable
	Mant    []float64 `msgpack:"m"` // Σ Domains entries
	Exp     int64     `msgpack:"e"`
}

// ClosedFormRounding is how much the cores of a closed form may be off together, relative to the sums of the absolute values of their
// terms and in units of 2^-53: 1e-13, and a few roundings a core and a leg.
func ClosedFormRounding(net *Network) float64 {
	return float64(1<<10 + 4*len(net.Cores) + 4*len(net.Dims))
}
