package golden

// Decompositions in canonical text: the inputs of contraction, apart from how it is encoded.

import (
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	regionparts "github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// names are the names of classes in the text, which never change.
var names = map[btn.Class]string{
	btn.ClassProduct: "parts", btn.ClassElimination: "base", btn.ClassSlices: "base", btn.ClassGroups: "base",
	btn.ClassRegions: "region",
}

func name(p btn.Part) string {
	if text, ok := names[p.Class()]; ok {
		return text
	}
	return string(p.Class())
}

// summary names a plan for people: its method and the classes of its parts.
func summary(p *btn.Plan) string {
	var all []btn.Part
	for _, e := range p.Estimates {
		all = append(all, e.Parts...)
	}
	var classes []string
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && name(all[i+n]) == name(all[i]) {
			n++
		}
		classes = append(classes, fmt.Sprintf("%s×%d", name(all[i]), n))
		i += n
	}
	return fmt.Sprintf("%s(%s)", p.Method, strings.Join(classes, ","))
}

// canonical writes every number with all its bits.
func canonical(p *btn.Plan) string {
	w := &writer{}
	w.plan(p)
	return w.String()
}

type writer struct {
	strings.Builder
	indent string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, w.indent+format+"\n", args...) }

func (w *writer) plan(p *btn.Plan) {
	quality := &btn.Quality{}
	if p.Grows() {
		quality = &btn.Quality{Residual: 1, LnExplained: math.Inf(-1), LnNormError: math.NaN(), ConditionGram: 1}
	} else if len(p.Estimates) > 0 {
		quality = p.Estimates[0].Quality
	}
	w.head(p.Method, quality, p.Estimates)
	for k := range p.Estimates {
		w.parts(k, &p.Estimates[k])
	}
	w.shared(p.Estimates)
	if !p.Grows() && p.Method != query.MethodRegions {
		return
	}
	masked := false
	var plans []*truncated.TruncatedPlan
	for _, e := range p.Estimates {
		if q, ok := e.Parts[0].(*truncated.Truncated); ok {
			masked = q.Plan.Masked
			for len(plans) <= q.Plan.Number {
				plans = append(plans, nil)
			}
			plans[q.Plan.Number] = q.Plan
		}
	}
	w.line("growth masked %t accuracy %s", masked, bits(p.Accuracy))
	for _, t := range plans {
		w.line(" plan %s %s order %v position %v tree %v", t.Family, t.Shape, t.Order, t.Position, t.Tree)
	}
	from := 0
	for _, e := range p.Estimates {
		r := e.Parts[0].About().Result
		var fixed []int
		if q, ok := e.Parts[0].(*truncated.Truncated); ok {
			fixed = q.Slice.Variables
		}
		w.line(" rung %s plan %d bond %d kind %q size %d slices %v of %d components %d to %d flops %s bytes %s",
			r.Family, r.Plan, r.Bond, r.Kind, r.Size, fixed, e.Slices, from, from+len(e.Parts),
			bits(e.Cost.Flops), bits(e.Cost.Bytes))
		from += len(e.Parts)
	}
}

// head is the common beginning of parts of an estimate, and its quality.
func (w *writer) head(method query.Method, q *btn.Quality, estimates []btn.Estimate) {
	w.line("%s exact %t ρ %s explained %s |B| %s |error| %s condition %s", method, q.Exact,
		bits(q.Residual), bits(q.LnExplained), bits(q.LnNormB), bits(q.LnNormError), bits(q.ConditionGram))
	frame := &btn.Frame{}
	if len(estimates) > 0 {
		if f, ok := btn.SharedData(estimates[0].Parts[0]).(*btn.Frame); ok {
			frame = f
		}
	}
	w.line("levels %d %v", frame.Levels.D, frame.Levels.Of)
	for l, o := range frame.Rotations {
		w.line("rotation %d %s", l, list(o))
	}
}

func (w *writer) parts(k int, e *btn.Estimate) {
	for i, part := range e.Parts {
		var order []int
		var from, to, slice int64
		var s countspace.Poly
		var r [][]float64
		var cp *tensor.CP
		switch q := part.(type) {
		case *closed.RankOne:
			r = q.R
		case *closed.SymmetryRankOne:
			s, r = q.S, q.R
		case *closed.CP:
			cp = q.Tensor
		case *exact.Elimination:
			order = q.Order
		case *exact.Slices:
			from, to = q.From, q.To
		case *exact.Groups:
			from, to = q.From, q.To
		case *truncated.Truncated:
			slice = q.Slice.At
		case *regionparts.Regions:
			from, to = q.From, q.To
		}
		a := e.Weights()[i]
		w.line("component %s × %s·2^%d order %v from %d to %d rung %d slice %d",
			name(part), bits(a.Mant), a.Exp, order, from, to, k, slice)
		w.line(" S %v %s", s.Shape, vector(s.Coef))
		for l, v := range r {
			w.line(" R %d %s", l, list(v))
		}
		if cp != nil {
			w.line(" CP %v %s", cp.Shape, list(cp.Weights))
			for l, v := range cp.Vectors {
				w.line(" V %d %s", l, list(v))
			}
		}
	}
}

// shared is the tree, the groups or the factors of an exact estimate.
func (w *writer) shared(estimates []btn.Estimate) {
	if len(estimates) == 0 {
		return
	}
	tree := func(c *exact.Tree) {
		w.line("tree %s tables %d merges %v slices %v of %d joint %t marginals %t",
			c.Shape, c.Tables, c.Merges, c.Slices, c.Count, c.Joint, c.Marginals)
	}
	switch q := estimates[0].Parts[0].(type) {
	case *exact.Slices:
		tree(q.Tree)
	case *exact.Groups:
		tree(&exact.Tree{Shape: q.Of.Shape, Count: int64(len(q.Of.Groups)), Marginals: true})
		for _, g := range q.Of.Groups {
			w.line(" group keep %v of %v %s tables %d merges %v slices %v of %d",
				g.Keep, g.Indices, g.Tree.Shape, g.Tree.Tables, g.Tree.Merges, g.Tree.Slices, g.Tree.Count)
		}
	case *exact.Product:
		for _, f := range q.Factors {
			w.line("part %v", f.Links)
			own := []btn.Estimate{*f.Estimate}
			w.indent += " "
			w.head(query.MethodExact, f.Estimate.Quality, own)
			w.parts(0, f.Estimate)
			w.shared(own)
			w.indent = w.indent[1:]
		}
	}
}

// list tells nil, which stands for all ones or the identity, from an empty list.
func list(x []float64) string {
	if x == nil {
		return "nil"
	}
	text := make([]string, len(x))
	for i := range x {
		text[i] = bits(x[i])
	}
	return "[" + strings.Join(text, " ") + "]"
}

func vector(v scaled.Vector) string {
	text := make([]string, v.Len())
	for i := range text {
		a := v.At(i)
		text[i] = fmt.Sprintf("%s·2^%d", bits(a.Mant), a.Exp)
	}
	return strings.Join(text, " ")
}
