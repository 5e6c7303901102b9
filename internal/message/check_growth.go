package message

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
)

// checkGrowth checks that the rungs of an approximate decomposition and its components name each other, and that plans
// and slices are of the network. Whether a plan fits is for the contraction to say.
func checkGrowth(n *btn.Network, d *btn.Decomposition) error {
	g := d.Growth
	for i := range d.Components {
		c := &d.Components[i]
		if c.Class != btn.ClassTruncated && c.Class != btn.ClassRegion {
			continue
		}
		place := fmt.Sprintf("components[%d]", i)
		if g == nil || c.Rung < 0 || c.Rung >= len(g.Rungs) {
			return invalid(place, "rung %d does not exist", c.Rung)
		}
		r := &g.Rungs[c.Rung]
		switch {
		case i < r.From || i >= r.To:
			return invalid(place, "it is not among the components of rung %d", c.Rung)
		case c.Slice < 0 || c.Slice >= r.Count:
			return invalid(place, "slice %d of %d", c.Slice, r.Count)
		case (c.Class == btn.ClassRegion) != (r.Family == btn.FamilyRegions):
			return invalid(place, "class %s in a rung of family %.20s", c.Class, r.Family)
		case c.From < 0 || c.To < c.From:
			return invalid(place, "regions from %d to %d", c.From, c.To)
		}
	}
	if g == nil {
		return nil
	}
	if !(g.Accuracy >= 0) || math.IsInf(g.Accuracy, 1) {
		return invalid("accuracy", "%v nats", g.Accuracy)
	}
	for k := range g.Rungs {
		if err := checkRung(n, d, &g.Rungs[k]); err != nil {
			return under(fmt.Sprintf("rungs[%d]", k), err)
		}
	}
	return nil
}

func checkRung(n *btn.Network, d *btn.Decomposition, r *btn.Rung) error {
	switch r.Family {
	case btn.FamilySweep, btn.FamilyTree:
		if r.Plan < 0 || r.Plan >= len(d.Growth.Plans) || d.Growth.Plans[r.Plan].Family != r.Family {
			return invalid("plan", "there is no plan %d of family %s", r.Plan, r.Family)
		}
		if r.Bond < 1 {
			return invalid("bond", "%d", r.Bond)
		}
	case btn.FamilyRegions:
		if r.Size < 0 {
			return invalid("size", "%d", r.Size)
		}
	default:
		return invalid("family", "%.40q is no family of this version", r.Family)
	}
	if r.From < 0 || r.To <= r.From || r.To > len(d.Components) {
		return invalid("from", "components from %d to %d of %d", r.From, r.To, len(d.Components))
	}
	count := int64(1)
	for _, v := range r.Slices {
		if v < 0 || v >= len(n.Variables) {
			return invalid("slices", "variable %d of %d", v, len(n.Variables))
		}
		if count > math.MaxInt32 {
			break
		}
		count *= int64(n.Variables[v].Domain)
	}
	if count != r.Count {
		return invalid("count", "%d slices, their variables give %d", r.Count, count)
	}
	if !(r.Flops >= 0) || !(r.Bytes >= 0) {
		return invalid("flops", "%v flops, %v bytes", r.Flops, r.Bytes)
	}
	return nil
}
