package lower

// Templates: a network's tables with the weights of its variables apart,
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
// without the tables that are nothing but the weights of a variable:
//
//	Z(net) = net.Scale · Scale · Σ_x Π_t Tables[t][x] · Π_v w_v[x]
//
// Tables are as they are in the network: none is normalised, and some have no index.
type Template struct {
	Dims    []int
	Tables  []sumproduct.Table
	Scale   scaled.Number
	Weights []Weights // by variable
}

// Weights says where a variable's weights are, in the network and in the expression.
type Weights struct {
	Link  int       // of the network, in CP form: it has the weights
	Own   []float64 // those without evidence; it shares memory with the network
	Index int       // of the expression
	// Values are those that zeros of the network leave, in the sequence of the index; nil: all
	Values []int
}

// Apart returns the template of a network without evidence. It returns false where Z is 0 by the
// zeros of net, where entries do not fit float64 (see Expression.Unfit), and where net is invalid.
// Cost as of Build.
func Apart(ctx context.Context, net *btn.Network) (*Template, bool) {
	bare := *net
	bare.Scale = scaled.One // evidence changes it
	l, err := lay(ctx, &bare, false, nil)
	if err != nil || l.zero || l.unfit != "" {
		return nil, false
	}

	out := &Template{Dims: l.indexDims(), Scale: l.scale}
	alone := l.weights(out, net)

	var floats arena.Slab[float64]
	for t, table := range l.tables {
		if table.gone || alone[t] {
			continue
		}
		data := restrict(l, table, table.data, floats.Make)
		out.Tables = append(out.Tables, sumproduct.Table{
			Scope:   l.scope(table, out.Dims),
			Data:    data,
			Rounded: table.rounded,
		})
	}
	return out, true
}

// weights lists the weights of the variables, and says of every table whether it is nothing else.
func (l *layout) weights(out *Template, net *btn.Network) []bool {
	variable := map[int]int{} // by hidden node
	for v, at := range net.Variables {
		root := l.find(l.hidden[at.Link])
		w := Weights{Link: at.Link, Own: WeightsAt(net, at.Link), Index: l.number[root]}
		if !l.whole(root) {
			w.Values = l.values(root)
		}
		out.Weights = append(out.Weights, w)
		variable[l.hidden[at.Link]] = v
	}

	alone := make([]bool, len(l.tables))
	for t, table := range l.tables {
		if len(table.nodes) == 1 {
			v, ok := variable[table.nodes[0]]
			alone[t] = ok && Same(out.Weights[v].Own, table.data)
		}
	}
	return alone
}

// WeightsAt returns the weights that a link in CP form has.
func WeightsAt(net *btn.Network, link int) []float64 {
	return net.Links[link].T.(*tensor.CP).Weights
}

// Same reports whether a and b are one piece of memory.
func Same(a, b []float64) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }
