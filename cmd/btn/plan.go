package main

import (
	"encoding/json"
	"fmt"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/config"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/learn"
)

type planCmd struct {
	requestFlags
	JSON bool `name:"json" help:"One JSON object per query."`
}

// forecast is what a query would take.
type forecast struct {
	Model       string     `json:"model"`
	Evidence    string     `json:"evidence_file,omitempty"`
	Variables   int        `json:"variables"`
	Factors     int        `json:"factors"`
	Legs        int        `json:"legs"`
	MaxDomain   int        `json:"max_domain"`
	MaxArity    int        `json:"max_arity"`
	Exact       btn.Plan   `json:"exact"`
	Memory      int64      `json:"memory"`
	Fits        bool       `json:"fits"`
	ClosedForm  int        `json:"closed_form_components"` // 0: none looked for or found
	LearnFlops  float64    `json:"learn_flops"`
	Choice      btn.Method `json:"choice"`
	Why         string     `json:"why"`
	Components  int        `json:"components"`
	description string
}

// Run prints what answering would take, per query.
func (c *planCmd) Run(t *terminal) error {
	m, queries, err := c.load()
	if err != nil {
		return err
	}
	net, err := infer.Reparameterise(m, c.settings())
	if err != nil {
		return err
	}
	for i, q := range queries {
		f, err := c.forecast(m, net, q)
		if err != nil {
			return err
		}
		if c.JSON {
			if err := json.NewEncoder(t.Out).Encode(f); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(t.Out)
		}
		fmt.Fprint(t.Out, f.description)
	}
	return nil
}

func (c *planCmd) forecast(m *factorgraph.Model, net *btn.Network, q infer.Query) (*forecast, error) {
	conditioned, err := net.Condition(q.Evidence)
	if err != nil {
		return nil, err
	}
	shape, err := einsum.Shape(conditioned)
	if err != nil {
		return nil, err
	}
	stats := m.Stats()
	s := c.settings()
	f := &forecast{
		Model: c.Model, Evidence: q.EvidenceFile, Variables: stats.Variables, Factors: stats.Factors, Legs: stats.Legs,
		MaxDomain: stats.MaxDomain, MaxArity: stats.MaxArity, Memory: s.Memory, Components: 1,
		Exact: elimination.Evaluate(shape, elimination.Best(shape)), LearnFlops: learn.Cost(net, s),
	}
	f.Fits = f.Exact.Bytes <= float64(s.Memory)
	need := fmt.Sprintf("its tables take %s, the budget is %s", config.FormatBytes(f.Exact.Bytes), config.FormatBytes(float64(s.Memory)))
	switch {
	case f.Fits:
		f.Choice, f.Why = btn.MethodExact, "it fits: "+need
	default:
		closed, ok, err := learn.ClosedForm(net, learn.MaxClosedFormTerms)
		if err != nil {
			return nil, err
		}
		if ok {
			f.Choice, f.ClosedForm, f.Components = btn.MethodExact, len(closed.Components), len(closed.Components)
			f.Why = fmt.Sprintf("elimination does not fit (%s), but the base tensor has a closed form of %d components", need, f.ClosedForm)
		} else {
			f.Choice, f.Components = btn.MethodSymmetryCP, s.Components
			f.Why = "the exact way does not fit: " + need
		}
	}
	f.describe()
	return f, nil
}

func (f *forecast) describe() {
	evidence := f.Evidence
	if evidence == "" {
		evidence = "none"
	}
	f.description = fmt.Sprintf(`model       %s
evidence    %s
variables   %d, largest domain %d
factors     %d, largest arity %d, %d legs
exact       width %d, largest table 2^%.1f entries, peak %s, %.3g flops
symmetry-cp %.3g flops to learn
auto        %s: %s
`, f.Model, evidence, f.Variables, f.MaxDomain, f.Factors, f.MaxArity, f.Legs,
		f.Exact.Width, f.Exact.Log2Table, config.FormatBytes(f.Exact.Bytes), f.Exact.Flops, f.LearnFlops, f.Choice, f.Why)
}
