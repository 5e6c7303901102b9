package truth

import (
	"testing"
)

// TestAgain runs cases by their names that had a violation once: they have none now.
func TestAgain(t *testing.T) {
	for name, why := range map[string]string{
		"wild-11-12219": "a certificate did not hold: terms of a factor cancelled while it was " +
			"written out, by 40 nats",
		"wild-11-1834": "the change of belief propagation was +Inf in the result",
		"wild-77-1383": "rotated tables cancelled to a negative total: the model was blamed",
		"wild-77-530":  "a table that left the range of float64 was an internal error",
	} {
		c, truth, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if truth == nil {
			truth = Solve(c.Model, c.Queries)
		}
		for _, v := range Check(c, truth, Run(c, DefaultLimits)) {
			t.Errorf("%s (%s): query %d: %s: %s", name, why, v.Query, v.Class, v.Detail)
		}
	}
}
