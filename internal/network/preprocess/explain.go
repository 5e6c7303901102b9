package preprocess

// Explain: the reason for Z = 0.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrNotZero is returned by Explain for a network that simplification does not show to be 0.
var ErrNotZero = errors.New("preprocess: the network is not known to be 0")

// Conflict is a set of tensors of a network that cannot all be met, and none of its proper
// subsets is known to be impossible. Where all three lists are empty the network's Scale is 0:
// a factor without variables, or a weight, is.
type Conflict struct {
	Variables []int // whose weights take part, by btn.Network.Number: evidence and factors of order one
	Cores     []int // for cores "factors": the c-th factor of order two or more, counted from 0
	Links     []int // other links; for cores "variables" the factors of order two or more

	observed []int   // of Variables: the one value of nonzero weight; −1: several or none
	scopes   [][]int // of Cores and Links: their variables
}

// String describes the conflict by positions of variables and values, in the form that query.Names.Text replaces.
func (c *Conflict) String() string {
	var parts []string
	for k, v := range c.Variables {
		if x := c.observed[k]; x >= 0 {
			parts = append(parts, fmt.Sprintf("variable %d = %d", v, x))
		} else {
			parts = append(parts, fmt.Sprintf("the weights of variable %d", v))
		}
	}
	for _, scope := range c.scopes {
		of := make([]string, len(scope))
		for k, v := range scope {
			of[k] = fmt.Sprintf("variable %d", v)
		}
		parts = append(parts, "the factor over "+strings.Join(of, ", "))
	}

	switch len(parts) {
	case 0:
		return "a factor without variables, or a weight, is 0"
	case 1:
		if len(c.Variables) == 1 && c.observed[0] < 0 {
			return fmt.Sprintf("no value of variable %d has a weight above 0", c.Variables[0])
		}
		return parts[0] + " is impossible"
	}
	return strings.Join(parts, "; ") + " contradict each other"
}

// describe sets observed and scopes for String, and numbers the variables for people.
func (c *Conflict) describe(net *btn.Network) {
	for _, v := range c.Variables {
		only, positive := -1, 0
		for x, w := range net.Links[net.Variables[v].Link].T.(*tensor.CP).Weights {
			if w != 0 {
				only = x
				positive++
			}
		}
		if positive != 1 {
			only = -1
		}
		c.observed = append(c.observed, only)
	}
	numbers := make([]int, len(net.Variables))
	for v := range numbers {
		numbers[v] = net.Number(v)
	}
	for k, v := range c.Variables {
		c.Variables[k] = numbers[v]
	}
	owners := map[int][]int{} // by leg: the variables of the other tensor that has it
	variable := make([]int, len(net.Links))
	for i, v := range net.Variables {
		variable[v.Link] = i + 1
	}
	for j, l := range net.Links {
		for _, leg := range l.Legs {
			if variable[j] > 0 {
				owners[leg] = append(owners[leg], numbers[variable[j]-1])
			}
		}
	}
	for _, core := range c.Cores {
		c.scopes = append(c.scopes, scopeOf(net.Cores[core].Legs, owners))
	}
	for _, core := range net.Cores { // these stand for variables if links are factors
		of := scopeOf(core.Legs, owners)
		for _, leg := range core.Legs {
			if owners[leg] == nil && len(c.Links) > 0 {
				owners[leg] = of
			}
		}
	}
	for _, link := range c.Links {
		c.scopes = append(c.scopes, scopeOf(net.Links[link].Legs, owners))
	}
}

// scopeOf returns the variables of legs, each once.
func scopeOf(legs []int, owners map[int][]int) (scope []int) {
	for _, leg := range legs {
		for _, v := range owners[leg] {
			if !slices.Contains(scope, v) {
				scope = append(scope, v)
			}
		}
	}
	return scope
}

// part is a tensor of the network that may be replaced by ones.
type part struct {
	// its number in one list or two (a link of a variable), −1 in the others
	core, link, variable int
}

// Explain returns why net, usually conditioned on evidence, is 0: variables and factors that
// contradict each other by their zeros. It takes tensors out and looks whether the rest is still
// known to be 0. Errors: ErrNotZero; lower.Build's; the context's. Cost: with n tensors and c in
// the answer, about 2c·log2(n/c) + 2c simplifications of the network. Source: U. Junker,
// QuickXplain: preferred explanations and relaxations for over-constrained problems (AAAI 2004).
func Explain(ctx context.Context, net *btn.Network) (*Conflict, error) {
	x := explanation{ctx: ctx, net: net}
	if err := net.Validate(); err != nil {
		return nil, err
	}

	parts := partsOf(net)
	zero, err := x.zero(parts)
	if err != nil {
		return nil, err
	}
	if !zero {
		return nil, ErrNotZero
	}

	found, err := x.shrink(nil, false, parts)
	if err != nil {
		return nil, err
	}

	c := &Conflict{}
	for _, p := range found {
		switch {
		case p.variable >= 0:
			c.Variables = append(c.Variables, p.variable)
		case p.core >= 0:
			c.Cores = append(c.Cores, p.core)
		default:
			c.Links = append(c.Links, p.link)
		}
	}

	slices.Sort(c.Variables)
	slices.Sort(c.Cores)
	slices.Sort(c.Links)
	c.describe(net)
	return c, nil
}

// partsOf lists the removable parts of net. The tensors that only join the
// legs of a variable cannot.
func partsOf(net *btn.Network) []part {
	var parts []part
	variable := make([]int, len(net.Links))
	for j := range variable {
		variable[j] = -1
	}

	for i, v := range net.Variables {
		variable[v.Link] = i
	}

	for j := range net.Links {
		parts = append(parts, part{core: -1, link: j, variable: variable[j]})
	}

	if net.Choice != query.CoresAreVariables {
		for c := range net.Cores {
			parts = append(parts, part{core: c, link: -1, variable: -1})
		}
	}
	return parts
}

// explanation carries one Explain.
type explanation struct {
	ctx context.Context
	net *btn.Network
}

// shrink returns a smallest part of rest that contradicts base;
// grown says that base has grown since it was last found to be possible.
func (x *explanation) shrink(base []part, grown bool, rest []part) ([]part, error) {
	if grown || len(base) == 0 {
		if zero, err := x.zero(base); zero || err != nil {
			return nil, err
		}
	}

	if len(rest) <= 1 {
		return rest, nil
	}

	first, second := rest[:len(rest)/2], rest[len(rest)/2:]
	right, err := x.shrink(join(base, first), true, second)
	if err != nil {
		return nil, err
	}
	left, err := x.shrink(join(base, right), len(right) > 0, first)
	return join(left, right), err
}

// join returns a and b as a list of its own.
func join(a, b []part) []part { return append(append([]part(nil), a...), b...) }

// zero says whether the network is known to be 0 with only the given parts as they are.
func (x *explanation) zero(keep []part) (bool, error) {
	if err := x.ctx.Err(); err != nil {
		return false, err
	}

	kept := map[part]bool{}
	for _, p := range keep {
		kept[p] = true
	}

	net := *x.net
	net.Links = slices.Clone(net.Links)
	net.Cores = slices.Clone(net.Cores)
	for _, p := range partsOf(x.net) {
		var err error
		switch {
		case kept[p]:
		case p.variable >= 0:
			cp := *net.Links[p.link].T.(*tensor.CP)
			cp.Weights = ones(len(cp.Weights))
			net.Links[p.link].T = &cp
		case p.core >= 0:
			net.Cores[p.core].T, err = x.anything(net.Cores[p.core].Legs)
		default:
			net.Links[p.link].T, err = x.anything(net.Links[p.link].Legs)
		}
		if err != nil {
			return false, err
		}
	}

	e, err := lower.Build(x.ctx, &net)
	if err != nil || e.Scale.IsZero() {
		return err == nil, err
	}

	r, err := Run(x.ctx, e, Options{NoStructure: true})
	return err == nil && r.Report.Zero != nil, err
}

// anything is a tensor on legs that is 1 for all values of the variables:
// (A⁻¹ 1) on every leg with a map A.
func (x *explanation) anything(legs []int) (tensor.Tensor, error) {
	t := &tensor.CP{Weights: []float64{1}}
	for _, l := range legs {
		d := x.net.Dims[l]
		v := ones(d)
		if x.net.Maps != nil && x.net.Maps[l].A != nil {
			inverse, err := x.net.Maps[l].Inverse(d)
			if err != nil {
				return nil, err
			}
			for r := range d {
				v[r] = 0
				for _, a := range inverse[r*d : (r+1)*d] {
					v[r] += a
				}
			}
		}
		t.Shape = append(t.Shape, d)
		t.Vectors = append(t.Vectors, v)
	}
	return t, nil
}

// ones returns n ones.
func ones(n int) []float64 {
	list := make([]float64, n)
	for k := range list {
		list[k] = 1
	}
	return list
}
