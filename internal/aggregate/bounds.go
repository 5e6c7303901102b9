package aggregate

// What ln Z lies between: the best of all bounds on either side.

import (
	"math"
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
	lower, upper := pooledBound{ln: math.Inf(-1)}, pooledBound{ln: math.Inf(1)}
	if b := &g.bounds; b.found {
		lower, upper = pooledBound{b.lower.ln, string(b.lower.how)}, pooledBound{b.upper.ln, string(b.upper.how)}
	}
	level := 1.0
	if p := &g.pool; p.rungs > 0 {
		if p.lower.ln > lower.ln {
			lower, level = p.lower, 1-policy.BoundsDelta
		}
		if p.upper.ln < upper.ln {
			upper, level = p.upper, 1-policy.BoundsDelta
		}
	}
	out := &btn.Bounds{Lower: finite(lower.ln), Upper: finite(upper.ln), Level: level}
	var how []string
	if out.Upper != nil {
		how = append(how, "above by "+upper.how)
	}
	if out.Lower != nil {
		how = append(how, "below by "+lower.how)
	}
	if len(how) == 0 {
		return nil
	}
	out.How = strings.Join(how, ", ")
	return out
}
