package aggregate

// What ln Z lies between: the best of all bounds on either side.

import (
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
)

// bounds are those that follow from the model alone.
type bounds struct {
	lower, upper side
	found        bool
}

// side is the best bound on one side and what it is.
type side struct {
	ln  float64
	how btn.BoundKind
}

// add takes in the bounds of parts.
func (b *bounds) add(parts []btn.Value, kinds []btn.Part) *btn.ErrorInfo {
	for i, v := range parts {
		q, ok := kinds[i].(*btn.Bound)
		if v.Bound == nil || !ok {
			return failure(fault.Internal, "component %d says no bound", i)
		}
		if !b.found {
			b.lower.ln, b.upper.ln = math.Inf(-1), math.Inf(1)
			b.found = true
		}
		if v.Bound.Lower > b.lower.ln {
			b.lower = side{v.Bound.Lower, q.Kind}
		}
		if v.Bound.Upper < b.upper.ln {
			b.upper = side{v.Bound.Upper, q.Kind}
		}
	}
	return nil
}

// report returns the best bounds of a sequence, nil where there are none: with the level of sampled ones where one of these is the best.
func (g *sequence) report() *btn.Bounds {
	out := &btn.Bounds{Level: 1}
	var how []string
	if b := &g.bounds; b.found {
		if out.Upper = finite(b.upper.ln); out.Upper != nil {
			how = append(how, "above by "+string(b.upper.how))
		}
		if out.Lower = finite(b.lower.ln); out.Lower != nil {
			how = append(how, "below by "+string(b.lower.how))
		}
	}
	if p := &g.pool; p.rungs > 0 && !math.IsInf(p.lower, -1) && (out.Lower == nil || p.lower > *out.Lower) {
		how = slices.DeleteFunc(how, func(s string) bool { return strings.HasPrefix(s, "below") })
		out.Lower, out.Level = finite(p.lower), 1-policy.BoundsDelta
		how = append(how, "below by "+p.how)
	}
	if len(how) == 0 {
		return nil
	}
	out.How = strings.Join(how, ", ")
	return out
}
