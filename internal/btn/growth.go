package btn

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Approximate decompositions: a ladder of rungs, each an estimate of its own, and what is known of their quality.

// Family names how the components of a rung approximate B.
type Family string

const (
	FamilySweep   Family = "mps"     // truncated legs, a matrix product state swept over the variables
	FamilyTree    Family = "tree"    // truncated legs along a tree of dense tensors
	FamilyRegions Family = "regions" // B in the BP gauge, projected on the messages outside a region
)

// Growth is how an approximate decomposition grows: rung after rung, each an estimate of Z by components of its own. All
// are handed out at once; the answer takes the shortest sequence of rungs that has settled and cancels the others.
type Growth struct {
	// Masked says that the network was simplified without the query's evidence, which enters as masks: the plans serve any.
	Masked   bool            `msgpack:"masked,omitempty"`
	Accuracy float64         `msgpack:"accuracy"`        // nats: the sequence has settled when its stated uncertainty is at most this
	Plans    []TruncatedPlan `msgpack:"plans,omitempty"` // what rungs of truncated legs follow
	Rungs    []Rung          `msgpack:"rungs"`           // in the sequence in which they count
	// Messages are those of belief propagation without evidence, where they are what was learned: there are no rungs then.
	Messages []float64 `msgpack:"messages,omitempty"`
}

// TruncatedPlan is a tree or a pair of orders, held fixed while the bond grows.
type TruncatedPlan struct {
	Family   Family  `msgpack:"family"`             // mps or tree
	Shape    string  `msgpack:"shape"`              // digest of the simplified network's hypergraph: it fits no other
	Order    []int   `msgpack:"order,omitempty"`    // mps: indices in the order they are summed
	Position []int   `msgpack:"position,omitempty"` // mps: rank of every index in the chain
	Tree     [][]int `msgpack:"tree,omitempty"`     // tree: what package compressed writes of its plan
}

// Rung is one estimate: Z̃ = Σ over the slices, each summed by its components.
type Rung struct {
	Family Family  `msgpack:"family"`
	Plan   int     `msgpack:"plan,omitempty"`   // truncated legs: which of Growth.Plans
	Bond   int     `msgpack:"bond,omitempty"`   // truncated legs: most values that a leg keeps
	Kind   string  `msgpack:"kind,omitempty"`   // regions: bethe, windows, cycles, balls
	Size   int     `msgpack:"size,omitempty"`   // regions: of the seeds
	Slices []int   `msgpack:"slices,omitempty"` // variables that are fixed, one slice per combination of their values
	Count  int64   `msgpack:"count"`            // slices, 1 without
	From   int     `msgpack:"from"`             // its components are From ≤ i < To
	To     int     `msgpack:"to"`
	Flops  float64 `msgpack:"flops"` // predicted, of all its components
	Bytes  float64 `msgpack:"bytes"` // predicted peak of one
}

// Truncation is what a component of truncated legs says beside its value.
type Truncation struct {
	Bond      int     `msgpack:"b"`           // largest dimension that a leg kept
	Discarded float64 `msgpack:"d"`           // largest Σ s²_dropped / Σ s² of one truncation: no error bar
	Truncated bool    `msgpack:"t"`           // something above rounding was dropped
	Reused    bool    `msgpack:"r,omitempty"` // with projectors learned under other evidence
	Bytes     float64 `msgpack:"m"`           // peak of live tables
	Relearned string  `msgpack:"w,omitempty"` // why projectors learned without evidence were not reused, where that was tried
}

// RegionPart is the part of a region estimate that one component is: the regions From ≤ r < To of a slice.
type RegionPart struct {
	LnBethe     float64       `msgpack:"z"` // ln Z_BP of the slice, nats
	LnSum       float64       `msgpack:"s"` // Σ_r α_r (ln Z_r − ln Z_BP)
	Linear      scaled.Number `msgpack:"l"` // Σ_r α_r (Z_r/Z_BP − 1)
	Regions     int64         `msgpack:"n"`
	NonPositive int64         `msgpack:"e,omitempty"` // regions left out because Z_r/Z_BP came out at or below 0
	Widest      float64       `msgpack:"w"`           // log2 of the largest table
	Converged   bool          `msgpack:"c,omitempty"` // belief propagation reached a fixed point
}

// Propagation is the state in which belief propagation ended.
type Propagation struct {
	LogZ      *float64 `msgpack:"z" json:"log_z"`     // Bethe value in nats; null where it is not a number
	Converged bool     `msgpack:"c" json:"converged"` // the largest change fell below the tolerance
	Updates   int64    `msgpack:"u" json:"updates"`   // message updates
	Change    float64  `msgpack:"d" json:"change"`    // largest change of a message in the last round
	// Phases are the Bethe values of the distinct fixed points that seeded starts found, largest first.
	Phases []float64 `msgpack:"p,omitempty" json:"phases"`
}

// EstimateResult is one rung of an approximate answer.
type EstimateResult struct {
	Family     Family   `json:"family"`
	Plan       int      `json:"plan"` // which tree or order; 0 for regions
	Bond       int      `json:"bond"` // truncated legs: most values a leg may keep; 0 for regions
	Kind       string   `json:"kind"` // of regions: bethe, windows, cycles, balls; empty for truncated legs
	Size       int      `json:"size"` // of the seeds of regions; 0 for truncated legs
	Slices     int64    `json:"slices"`
	LogZ       *float64 `json:"log_z"`               // nats; null where this rung failed
	LogZLinear *float64 `json:"log_z_linear"`        // regions: ln of the linear sum (Lemma 5); null where that is not above 0
	Discarded  *float64 `json:"discarded"`           // truncated legs: largest relative weight of one truncation; no error bar
	Truncated  bool     `json:"truncated"`           // something above rounding was dropped; always true for regions
	Reused     bool     `json:"reused"`              // with projectors learned under other evidence
	Relearned  string   `json:"relearned,omitempty"` // why projectors learned without evidence were not reused, where that was tried
	Components int      `json:"components"`
	Regions    int64    `json:"regions"`
	Flops      float64  `json:"flops"`
	PeakBytes  float64  `json:"peak_bytes"`
	Failed     string   `json:"failed"` // why there is no number; empty otherwise
}

// KindBethe is the kind of a rung of FamilyRegions that has no regions: the value and the beliefs of belief propagation.
const KindBethe = "bethe"
