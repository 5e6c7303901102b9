package regions

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLongClausesHaveNoSigns: belief propagation sees clauses of ten literals without numbers below 0. Of two that share a variable,
// once as it is and once negated, it counts the models.
func TestLongClausesHaveNoSigns(t *testing.T) {
	m := &factorgraph.Model{}
	var first, second []int
	for v := range 19 {
		m.Domains = append(m.Domains, 2)
		if v <= 9 {
			first = append(first, v)
		}
		if v >= 9 {
			second = append(second, v)
		}
	}
	positive, negative := make([]bool, 10), make([]bool, 10)
	for k := range positive {
		positive[k] = true
	}
	m.Factors = []factorgraph.Factor{
		{Scope: first, Table: factorgraph.Clause(positive...)},
		{Scope: second, Table: factorgraph.Clause(negative...)},
	}
	net, star := lowered(t, m)
	if !star.Signed() {
		t.Fatal("a star of a clause has no numbers below 0, which shows nothing")
	}
	g, err := ProblemGround(t.Context(), problem.New(net, problem.Options{}), 0)
	if err != nil {
		t.Fatal(err)
	}
	if g.State.Signed {
		t.Error("messages have signs")
	}
	const all, but = 1 << 9, 1<<9 - 1 // values of the other nine variables; those that make their clause true alone
	if want := math.Log(2 * all * but); math.Abs(g.LnBethe-want) > 1e-12*want {
		t.Errorf("ln Z is %v, want %v", g.LnBethe, want)
	}
}

// TestMessagesThatCancel have no value that could be sent: each message of [[1, −1], [−1, 1]] between two variables is 0.
func TestMessagesThatCancel(t *testing.T) {
	m := &factorgraph.Model{
		Domains: []int{2, 2},
		Factors: []factorgraph.Factor{{
			Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, -1, -1, 1}},
		}},
	}
	net, _ := lowered(t, m)
	_, err := ProblemGround(t.Context(), problem.New(net, problem.Options{}), 0)
	if fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("error %v, want one of code unsupported", err)
	}
}
