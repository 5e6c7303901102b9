package query

import "cmp"

// CoreChoice says which tensors of a factor graph's network are the cores.
type CoreChoice string

const (
	// CoresAreFactors: B = ⊗_j T̄^(j), the links are the variable tensors V^(i). The default: evidence never touches B.
	CoresAreFactors CoreChoice = "factors"
	// CoresAreVariables: B = ⊗_i V^(i), the links are the factors. Unary weights are order-one links on a leg of their own.
	CoresAreVariables CoreChoice = "variables"
)

// MapKind names the choice of the invertible maps on the legs.
type MapKind string

const (
	MapIdentity   MapKind = "identity"
	MapOrthogonal MapKind = "orthogonal" // Hadamard for dimension 2, DCT-II above
	MapBP         MapKind = "bp"         // the gauge of belief propagation's messages
	MapLearned    MapKind = "learned"    // orthogonal, learned with the components from the identity
	MapGiven      MapKind = "given"
)

// Method names how a query is answered.
type Method string

const (
	MethodAuto       Method = "auto"        // exact if it fits, else truncated legs, or regions where those do not fit
	MethodExact      Method = "exact"       // C = B, or a closed-form decomposition of B
	MethodSymmetryCP Method = "symmetry-cp" // the paper's learned decomposition
	MethodTruncated  Method = "truncated"   // truncated legs with a growing bond
	MethodRegions    Method = "regions"     // regions in the BP gauge
	MethodCircuit    Method = "circuit"     // C = B as an arithmetic circuit; answers say exact
	MethodSampled    Method = "sampled"     // a random decomposition, unbiased, with bounds at a stated probability
)

// Objective names the distance between B and a learned decomposition.
type Objective string

const (
	// ObjectiveVariance is the variance of Z̃·E[B/B̃], which the answer states: components are learned from annealed draws.
	ObjectiveVariance Objective = "variance"
	// ObjectiveFrobenius is the paper's ‖B − B̃‖, with ρ and a certificate; it knows neither evidence nor links.
	ObjectiveFrobenius Objective = "frobenius"
)

// Methods lists all methods.
var Methods = []Method{MethodAuto, MethodExact, MethodSymmetryCP, MethodTruncated, MethodRegions, MethodCircuit, MethodSampled}

// Settings control learning. The zero value of a field means its default. They are part of the cache key.
type Settings struct {
	// Method is the way to the answer, default auto.
	Method Method `msgpack:"method,omitempty" json:"method,omitempty"`
	// Objective of symmetry-cp, default variance; frobenius where Maps are set, which it alone reads.
	Objective Objective `msgpack:"objective,omitempty" json:"objective,omitempty"`
	// Components is the rank r of symmetry-cp at most, default 16 (the most) by the variance and 4 by ‖B − B̃‖.
	Components int `msgpack:"components,omitempty" json:"components,omitempty"`
	// Maps are the invertible maps in which symmetry-cp learns, default identity.
	Maps MapKind `msgpack:"maps,omitempty" json:"maps,omitempty"`
	// Cores says which tensors of the factor graph are the cores, default factors.
	Cores CoreChoice `msgpack:"cores,omitempty" json:"cores,omitempty"`
	// Seed of the starts.
	Seed uint64 `msgpack:"seed,omitempty" json:"seed,omitempty"`
	// Memory is the bytes for tables, default 2 GiB.
	Memory int64 `msgpack:"memory,omitempty" json:"memory,omitempty"`
	// NoExact: auto does not take the exact way.
	NoExact bool `msgpack:"no_exact,omitempty" json:"no_exact,omitempty"`
	// Bond is the bond that truncated grows to; 0: as far as Budget goes.
	Bond int `msgpack:"bond,omitempty" json:"bond,omitempty"`
	// Budget is the flops of a query's contractions by truncated, regions and sampled, default 1.8e11. Symmetry-cp learns for a quarter.
	Budget float64 `msgpack:"budget,omitempty" json:"budget,omitempty"`
	// Accuracy is the uncertainty in nats at which truncated, regions and sampled end, default 1e-9.
	Accuracy float64 `msgpack:"accuracy,omitempty" json:"accuracy,omitempty"`
}

// DefaultMemory is the memory budget of a request that names none: 2 GiB.
const DefaultMemory = int64(2) << 30

// DefaultComponents is the rank of symmetry-cp by the plain objective unless a request says otherwise, MostMixed by the variance.
const (
	DefaultComponents = 4
	MostMixed         = 16
)

// DefaultBudget is the work that the contractions of an approximate answer may take unless a request says otherwise.
const DefaultBudget = 1.8e11

// DefaultAccuracy is the stated uncertainty, in nats, at which an approximate answer stops growing.
const DefaultAccuracy = 1e-9

// WithDefaults returns s with every zero field at its default.
func (s Settings) WithDefaults() Settings {
	s.Method = cmp.Or(s.Method, MethodAuto)
	if s.Method == MethodSymmetryCP {
		s = s.withLearningDefaults()
	}
	s.Maps = cmp.Or(s.Maps, MapIdentity)
	s.Cores = cmp.Or(s.Cores, CoresAreFactors)
	s.Memory = cmp.Or(s.Memory, DefaultMemory)
	s.Budget = cmp.Or(s.Budget, DefaultBudget)
	s.Accuracy = cmp.Or(s.Accuracy, DefaultAccuracy)
	return s
}

// withLearningDefaults returns s with the defaults of symmetry-cp. The objective is the variance. But if maps are set, it is the Frobenius
// norm, the only objective that uses them.
func (s Settings) withLearningDefaults() Settings {
	hasMaps := s.Maps != "" && s.Maps != MapIdentity
	if s.Objective == "" && hasMaps {
		s.Objective = ObjectiveFrobenius
	} else if s.Objective == "" {
		s.Objective = ObjectiveVariance
	}
	if s.Components == 0 && s.Objective == ObjectiveFrobenius {
		s.Components = DefaultComponents
	} else if s.Components == 0 {
		s.Components = MostMixed
	}
	return s
}
