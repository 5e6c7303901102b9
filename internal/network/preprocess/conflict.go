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

// String returns a sentence about the conflict, such as "variable 3 = 1; the factor over variable 3, variable 4 contradict each other".
// Variables and values are written as numbers in a form that query.Names.Text replaces by names. observed has the observed value of each
// variable of the conflict, −1 for none.
func (c *Conflict) String() string {
	var parts []string // a text for each tensor of the conflict
	for k, v := range c.Variables {
		if value := c.observed[k]; value >= 0 {
			parts = append(parts, fmt.Sprintf("variable %d = %d", v, value))
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
		isUnobservedVariable := len(c.Variables) == 1 && c.observed[0] < 0
		if isUnobservedVariable {
			return fmt.Sprintf("no value of variable %d has a weight above 0", c.Variables[0])
		}
		return parts[0] + " is impossible"
	}
	return strings.Join(parts, "; ") + " contradict each other"
}

// newConflict returns the conflict of parts of net: their variables, cores and links, and for its text the observed value of each variable
// and the variables of each factor. A part names a variable by its position in net.Variables; the result names it by the number that people
// know (net.Number). The observed value is the only one whose weight is not 0, −1 if there are several or none.
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

	// The observed value of each variable, and then its number in place of its position.
	for k, v := range c.Variables {
		weights := net.Links[net.Variables[v].Link].T.(*tensor.CP).Weights
		c.observed = append(c.observed, onlyNonzero(weights))
		c.Variables[k] = net.Number(v)
	}

	// The variables of each factor.
	variablesOf := legVariables(net) // by leg
	for _, core := range c.Cores {
		c.scopes = append(c.scopes, scopeOf(net.Cores[core].Legs, variablesOf))
	}
	if len(c.Links) > 0 {
		addCoreVariables(net, variablesOf)
	}
	for _, link := range c.Links {
		c.scopes = append(c.scopes, scopeOf(net.Links[link].Legs, variablesOf))
	}
	return c
}

// onlyNonzero returns the value whose weight is the only one that is not 0, or −1 if several or no weights are.
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

// legVariables returns for every leg the variables whose link has it. It gives them by the numbers that people know: those in the network
// that net was cut from. Legs of links without a variable are not in the map.
func legVariables(net *btn.Network) map[int][]int {
	variableOf := map[int]int{} // by link: the number of its variable
	for v, variable := range net.Variables {
		variableOf[variable.Link] = net.Number(v)
	}
	variablesOf := map[int][]int{}
	for j, link := range net.Links {
		if number, isVariable := variableOf[j]; isVariable {
			for _, leg := range link.Legs {
				variablesOf[leg] = append(variablesOf[leg], number)
			}
		}
	}
	return variablesOf
}

// addCoreVariables adds the variables of further legs to variablesOf, for a net whose factors are links. A core stands for a variable
// there: one of its legs joins it to the variable's own link and has the variable in variablesOf (legVariables); its other legs join it to
// factors, and get the same variable.
func addCoreVariables(net *btn.Network, variablesOf map[int][]int) {
	for _, core := range net.Cores {
		scope := scopeOf(core.Legs, variablesOf)
		for _, leg := range core.Legs {
			if variablesOf[leg] == nil {
				variablesOf[leg] = scope
			}
		}
	}
}

// scopeOf returns the variables of some legs, each once. variablesOf lists the variables of every leg.
func scopeOf(legs []int, variablesOf map[int][]int) (scope []int) {
	for _, leg := range legs {
		for _, v := range variablesOf[leg] {
			if !slices.Contains(scope, v) {
				scope = append(scope, v)
			}
		}
	}
	return scope
}
