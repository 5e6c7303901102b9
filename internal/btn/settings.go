package btn

// What a request may say about how it is answered.

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
