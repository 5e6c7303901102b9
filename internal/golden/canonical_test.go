package golden

// Decompositions in canonical text: what contraction depends on, apart from how it is encoded.

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// summary names a decomposition for people: its method and the classes of its components.
func summary(d *btn.Decomposition) string {
	var classes []string
	for i := 0; i < len(d.Components); {
		n := 1
		for i+n < len(d.Components) && d.Components[i+n].Class == d.Components[i].Class {
			n++
		}
		classes = append(classes, fmt.Sprintf("%s×%d", d.Components[i].Class, n))
		i += n
	}
	return fmt.Sprintf("%s(%s)", d.Method, strings.Join(classes, ","))
}

// canonical writes every number with all its bits.
func canonical(d *btn.Decomposition) string {
	var b strings.Builder
	write(&b, "", d)
	return b.String()
}

func write(b *strings.Builder, indent string, d *btn.Decomposition) {
	line := func(format string, args ...any) { fmt.Fprintf(b, indent+format+"\n", args...) }
	line("%s exact %t ρ %s explained %s |B| %s |error| %s condition %s", d.Method, d.Exact,
		bits(d.Residual), bits(d.LnExplained), bits(d.LnNormB), bits(d.LnNormError), bits(d.ConditionGram))
	line("levels %d %v", d.Levels.D, d.Levels.Of)
	for l, o := range d.Rotations {
		line("rotation %d %s", l, list(o))
	}
	for i, c := range d.Components {
		line("component %s × %s order %v from %d to %d rung %d slice %d",
			c.Class, weight(d.Alpha, i), c.Order, c.From, c.To, c.Rung, c.Slice)
		line(" S %v %s", c.S.Shape, vector(c.S.Coef))
		for l, r := range c.R {
			line(" R %d %s", l, list(r))
		}
		if c.CP != nil {
			line(" CP %v %s", c.CP.Shape, list(c.CP.Weights))
			for l, v := range c.CP.Vectors {
				line(" V %d %s", l, list(v))
			}
		}
	}
	if c := d.Contraction; c != nil {
		line("tree %s tables %d merges %v slices %v of %d joint %t marginals %t",
			c.Shape, c.Tables, c.Merges, c.Slices, c.Count, c.Joint, c.Marginals)
		for _, g := range c.Groups {
			line(" group keep %v of %v %s tables %d merges %v slices %v of %d",
				g.Keep, g.Indices, g.Shape, g.Tables, g.Merges, g.Slices, g.Count)
		}
	}
	for _, p := range d.Parts {
		line("part %v", p.Links)
		write(b, indent+" ", p.Decomposition)
	}
	if g := d.Growth; g != nil {
		line("growth masked %t accuracy %s messages %s", g.Masked, bits(g.Accuracy), list(g.Messages))
		for _, p := range g.Plans {
			line(" plan %s %s order %v position %v tree %v", p.Family, p.Shape, p.Order, p.Position, p.Tree)
		}
		for _, r := range g.Rungs {
			line(" rung %s plan %d bond %d kind %q size %d slices %v of %d components %d to %d flops %s bytes %s",
				r.Family, r.Plan, r.Bond, r.Kind, r.Size, r.Slices, r.Count, r.From, r.To, bits(r.Flops), bits(r.Bytes))
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

// weight is weight i, where there are weights.
func weight(alpha []scaled.Number, i int) string {
	if alpha == nil {
		return "1"
	}
	return fmt.Sprintf("%s·2^%d", bits(alpha[i].Mant), alpha[i].Exp)
}
