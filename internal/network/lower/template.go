package lower

// Templates: a network's tables apart from the weights of its variables,
// to be compiled once and run under any evidence.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Template is Build's expression without the network's scale and
// without the tables that have nothing but the weights of a variable:
//
//	Z(net) = net.Scale · Scale · Σ_x Π_t Tables[t][x] · Π_v w_v[x]
//
// Tables have the entries of the network: none is normalised, and some have no index.
type Template struct {
	Dims    []int // by index
	Tables  []sumproduct.Table
	Scale   scaled.Number
	Weights []Weights // by variable
}

// Weights tells where the weights of a variable are, in the network and in the expression.
type Weights struct {
	Link            int       // number of the link, in CP form, whose weights they are
	WithoutEvidence []float64 // the weights without evidence; they share memory with the network
	Index           int       // the index of the expression that runs over the variable's values
	// Values are the values that zeros of the network do not exclude, in the sequence of the index; nil: all values.
	Values []int
}

// NewTemplate returns the template of a network without evidence: its tables, but for the tables of nothing but the weights of a variable,
// which evidence changes. ok is false if Z is 0 by the zeros of net, if float64 does not hold all entries (see Expression.Unfit), if net
// is invalid, or if the context has ended. Cost as of Build.
func NewTemplate(ctx context.Context, net *btn.Network) (t *Template, ok bool) {
	bare := *net
	bare.Scale = scaled.One // evidence changes the network's scale, so that the template has none of it
	l, err := newLayout(ctx, &bare, form{})
	if err != nil || l.isZero || l.unfit != "" {
		return nil, false
	}

	template := &Template{Dims: l.indexDims(), Scale: l.scale, Weights: l.variableWeights(net)}
	hasOnlyWeights := l.weightTables(net)

	var slab arena.Slab[float64]
	for t, table := range l.tables {
		if table.isAbsorbed || hasOnlyWeights[t] { // an absorbed table is applied to another one
			continue
		}
		data := copyLiving(l, table, table.data, slab.Make)
		template.Tables = append(template.Tables, sumproduct.Table{
			Scope:   l.scope(table, template.Dims),
			Data:    data,
			Rounded: table.rounded,
		})
	}
	return template, true
}

// variableWeights returns, for every variable, the number of its link, the weights that the link has in net, which has no evidence, and
// the variable's index in the expression. One index may stand for several nodes; root returns the one of them under which indexOf lists
// it. Values lists the values that zeros of the network leave; nil means all.
func (l *layout) variableWeights(net *btn.Network) []Weights {
	var weights []Weights
	for _, variable := range net.Variables {
		root := l.root(l.hiddenNode[variable.Link])
		w := Weights{Link: variable.Link, WithoutEvidence: LinkWeights(net, variable.Link), Index: l.indexOf[root]}
		if !l.isComplete(root) {
			w.Values = l.livingValues(root)
		}
		weights = append(weights, w)
	}
	return weights
}

// weightTables returns, for every table, whether its entries are the weights of a variable. Such a table is over the hidden node of the
// variable's link alone, and its data is the very memory of the weights in net. Another table over that node has other memory.
func (l *layout) weightTables(net *btn.Network) []bool {
	linkOf := map[int]int{} // by hidden node: the link, if it has the weights of a variable
	for _, variable := range net.Variables {
		linkOf[l.hiddenNode[variable.Link]] = variable.Link
	}
	hasOnlyWeights := make([]bool, len(l.tables))
	for t, table := range l.tables {
		if len(table.nodes) == 1 {
			link, isOfVariable := linkOf[table.nodes[0]]
			hasOnlyWeights[t] = isOfVariable && SharesMemory(LinkWeights(net, link), table.data)
		}
	}
	return hasOnlyWeights
}

// LinkWeights returns the weights of a link in CP form. They share memory with the network. It panics if the link has another form.
func LinkWeights(net *btn.Network, link int) []float64 {
	return net.Links[link].T.(*tensor.CP).Weights
}

// SharesMemory reports whether a and b are the same piece of memory. It returns false if they are empty.
func SharesMemory(a, b []float64) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }
