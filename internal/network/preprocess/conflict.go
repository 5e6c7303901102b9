package preprocess

// Conflicts: what contradicts each other in a network, for people.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Conflict is a set of tensors of a network that cannot all be met, and none of its proper
// subsets is known to be impossible. If all three lists are empty, the network's Scale is 0:
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
		variables := make([]string, len(scope))
		for k, v := range scope {
			variables[k] = fmt.Sprintf("variable %d", v)
		}
		parts = append(parts, "the factor over "+strings.Join(variables, ", "))
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

// newConflict describes parts of net, whose variables it numbers for people.
func newConflict(net *btn.Network, parts []part) *Conflict {
	c := &Conflict{}
	for _, p := range parts {
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

	for k, v := range c.Variables {
		weights := net.Links[net.Variables[v].Link].T.(*tensor.CP).Weights
		c.observed = append(c.observed, onlyNonzero(weights))
		c.Variables[k] = net.Number(v)
	}

	owners := ownersOf(net)
	for _, core := range c.Cores {
		c.scopes = append(c.scopes, scopeOf(net.Cores[core].Legs, owners))
	}
	if len(c.Links) > 0 { // other legs of a core are its variables', for it stands for one if links are factors
		for _, core := range net.Cores {
			scope := scopeOf(core.Legs, owners)
			for _, leg := range core.Legs {
				if owners[leg] == nil {
					owners[leg] = scope
				}
			}
		}
	}
	for _, link := range c.Links {
		c.scopes = append(c.scopes, scopeOf(net.Links[link].Legs, owners))
	}
	return c
}

// onlyNonzero returns the value of the only weight that is not 0; −1 for several or none.
func onlyNonzero(weights []float64) int {
	only := -1
	for x, w := range weights {
		if w == 0 {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = x
	}
	return only
}

// ownersOf returns, by leg, the numbers of the variables whose link has it.
func ownersOf(net *btn.Network) map[int][]int {
	numbers := map[int]int{} // by link
	for v, variable := range net.Variables {
		numbers[variable.Link] = net.Number(v)
	}
	owners := map[int][]int{}
	for j, link := range net.Links {
		if number, ok := numbers[j]; ok {
			for _, leg := range link.Legs {
				owners[leg] = append(owners[leg], number)
			}
		}
	}
	return owners
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
