package btn

// Parts of estimates that grow: slices with truncated legs, and regions.

import "math"

// Truncated is one slice of B with truncated legs, along a tree or a sweep.
type Truncated struct {
	Along *TruncatedPlan `msgpack:"-"`
	Bond  int            `msgpack:"bond"` // most values that a leg keeps
	Slice Slice          `msgpack:"slice"`
}

// TruncatedPlan is a tree or a pair of orders, held fixed while the bond grows.
type TruncatedPlan struct {
	Family Family `msgpack:"family"`           // mps or tree
	Number int    `msgpack:"number,omitempty"` // among those of the plan
	// digest of the simplified network's hypergraph: it fits no other
	Shape    string `msgpack:"shape"`
	Order    []int  `msgpack:"order,omitempty"`    // mps: indices in the order they are summed
	Position []int  `msgpack:"position,omitempty"` // mps: rank of every index in the chain
	// tree: what package compressed writes of its plan
	Tree [][]int `msgpack:"tree,omitempty"`
	// Masked says that the network was simplified without the query's evidence,
	// which enters as masks: the plan serves any.
	Masked bool `msgpack:"masked,omitempty"`
	// Accuracy, in nats, is what reused projectors may add to the error.
	Accuracy float64 `msgpack:"accuracy"`
}

// Class implements Part.
func (*Truncated) Class() Class { return ClassTruncated }

// Common implements Sharer.
func (p *Truncated) Common() any { return p.Along }

// Share implements Sharer.
func (p *Truncated) Share(common any) (ok bool) {
	p.Along, ok = common.(*TruncatedPlan)
	return ok
}

// Fits implements Part. Whether the plan fits the simplified network is for the contraction to say.
func (p *Truncated) Fits(n *Network) error {
	switch {
	case p.Along == nil:
		return misfit("it has no tree and no sweep")
	case p.Along.Family != FamilySweep && p.Along.Family != FamilyTree:
		return misfit("%.40q is no family of this version", p.Along.Family)
	case !(p.Along.Accuracy >= 0) || math.IsInf(p.Along.Accuracy, 1):
		return misfit("accuracy %v nats", p.Along.Accuracy)
	case p.Bond < 1:
		return misfit("bond %d", p.Bond)
	}
	return p.Slice.fits(n)
}

// Slice fixes some variables of the model to one value each.
type Slice struct {
	Variables []int `msgpack:"variables,omitempty"`
	// At are the digits of their values, the last variable fastest.
	At int64 `msgpack:"at,omitempty"`
}

// Count is the number of slices that fixing the variables makes;
// math.MaxInt64 where that does not fit.
func (s Slice) Count(n *Network) int64 {
	count := int64(1)
	for _, v := range s.Variables {
		d := int64(n.Variables[v].Domain)
		if d > 0 && count > math.MaxInt64/d {
			return math.MaxInt64
		}
		count *= d
	}
	return count
}

func (s Slice) fits(n *Network) error {
	for _, v := range s.Variables {
		if v < 0 || v >= len(n.Variables) {
			return misfit("it fixes variable %d of %d", v, len(n.Variables))
		}
	}
	if count := s.Count(n); s.At < 0 || s.At >= count {
		return misfit("slice %d of %d", s.At, count)
	}
	return nil
}

// Regions are some of the regions of one slice of B in the BP gauge.
type Regions struct {
	Kind  string `msgpack:"kind"` // bethe, windows, loops, balls
	Size  int    `msgpack:"size"` // of the seeds; 0 for kind bethe
	Slice Slice  `msgpack:"slice"`
	// From and To are a share of the slice's regions, in units of 1/WholeShare:
	// how many there are is known under evidence only.
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
	// Updates bounds those of belief propagation in a slice; 0: package bp does. Planning ended with the messages of the whole.
	Updates int64 `msgpack:"updates,omitempty"`
}

// WholeShare is all regions of a slice.
const WholeShare = int64(1) << 20

// KindBethe is the kind of Regions without regions:
// the value and the beliefs of belief propagation.
const KindBethe = "bethe"

// Class implements Part.
func (*Regions) Class() Class { return ClassRegions }

// Fits implements Part.
func (p *Regions) Fits(n *Network) error {
	switch {
	case p.Size < 0:
		return misfit("regions of size %d", p.Size)
	case p.From < 0 || p.To < p.From || p.To > WholeShare:
		return misfit("regions from %d to %d of %d", p.From, p.To, WholeShare)
	}
	return p.Slice.fits(n)
}

// Describe implements Part.
func (p *Truncated) Describe(r *EstimateResult) {
	r.Family, r.Plan, r.Bond = p.Along.Family, p.Along.Number, p.Bond
}

// Describe implements Part.
func (p *Regions) Describe(r *EstimateResult) {
	r.Family, r.Kind, r.Size = FamilyRegions, p.Kind, p.Size
}

func (*Truncated) part() {}
func (*Regions) part()   {}
