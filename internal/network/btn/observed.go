package btn

// Networks under many sets of observations, one after the other.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// Observed is a network whose weights change in place. It does what Condition does for many sets of observations, without a copy for each.
// Only one goroutine may use it. All lists are by variable.
type Observed struct {
	net            Network
	freeTensor     []tensor.Tensor // its link's tensor without evidence
	observedTensor []*tensor.CP    // its link's tensor under an observation; nil until it is first observed
	values         []int           // the observed value; −1 for none
}

// NewObserved returns the network without observations. It copies the list of links, which observations change, and shares all else with
// net. The weights of every variable have to be 1: an observation puts 0 and 1 in their place, whatever they are. They have to be a
// *tensor.CP, as Variable says: Observe panics at the first observation of a variable whose weights have another form. Time
// O(variables + links).
func NewObserved(net *Network) *Observed {
	o := &Observed{
		net:            *net,
		observedTensor: make([]*tensor.CP, len(net.Variables)),
		values:         slices.Repeat([]int{-1}, len(net.Variables)),
	}
	o.net.Links = slices.Clone(net.Links)
	for _, variable := range net.Variables {
		o.freeTensor = append(o.freeTensor, net.Links[variable.Link].T)
	}
	return o
}

// Observe returns the network under observations. values has the observed value of every variable, −1 for a variable without one. Each call
// changes and returns the same network: it changes the links of variables whose value differs from that of the call before. The weights of
// an observed variable are 1 for the observed value and 0 for the others. Time O(variables).
func (o *Observed) Observe(values []int) *Network {
	for v, x := range values {
		previous, link := o.values[v], &o.net.Links[o.net.Variables[v].Link]
		if x == previous {
			continue
		}
		o.values[v] = x
		if x < 0 { // the variable was observed before, so it has an observedTensor
			clear(o.observedTensor[v].Weights)
			link.T = o.freeTensor[v]
			continue
		}
		if o.observedTensor[v] == nil {
			t := *o.freeTensor[v].(*tensor.CP)
			t.Weights = make([]float64, len(t.Weights))
			o.observedTensor[v] = &t
		}
		if previous >= 0 {
			o.observedTensor[v].Weights[previous] = 0
		}
		o.observedTensor[v].Weights[x] = 1
		link.T = o.observedTensor[v]
	}
	return &o.net
}
