package methods_test

// The common suite on circuits.

import (
	"context"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// decisions builds the circuit of a formula in the plainest way: a decision on every variable, one after the other.
type decisions struct {
	b       *circuit.Builder
	f       *formula.Formula
	values  []int
	clauses [][][]formula.Literal // by variable: those of which it is the last
	tables  [][]formula.Table
}

func decide(f *formula.Formula) (*circuit.Circuit, error) {
	n := len(f.Domains)
	d := decisions{
		b: circuit.NewBuilder(f.Domains, 0), f: f, values: make([]int, n),
		clauses: make([][][]formula.Literal, n+1), tables: make([][]formula.Table, n+1),
	}
	for _, c := range f.Clauses {
		last := 0
		for _, l := range c {
			v, _ := d.value(l)
			last = max(last, v+1)
		}
		d.clauses[last] = append(d.clauses[last], c)
	}
	for _, t := range f.Tables {
		last := 0
		for _, v := range t.Scope {
			last = max(last, int(v)+1)
		}
		d.tables[last] = append(d.tables[last], t)
	}
	return d.b.Finish(context.Background(), d.b.Product(d.b.Number(f.Scale), d.from(0)))
}

// value returns the variable and the value of a literal.
func (d *decisions) value(l formula.Literal) (v, a int) {
	for v+1 < len(d.f.Domains) && d.f.FirstAtom(v+1) <= l.Atom() {
		v++
	}
	return v, l.Atom() - d.f.FirstAtom(v)
}

// from sums over the variables from v on.
func (d *decisions) from(v int) circuit.Node {
	for _, c := range d.clauses[v] {
		holds := false
		for _, l := range c {
			u, a := d.value(l)
			holds = holds || (d.values[u] == a) != l.IsNegative()
		}
		if !holds {
			return circuit.Zero
		}
	}
	node := circuit.One
	for _, t := range d.tables[v] {
		at := 0
		for _, u := range t.Scope {
			at = at*d.f.Domains[u] + d.values[u]
		}
		node = d.b.Product(node, d.b.Number(scaled.FromFloat(t.Values[at])))
	}
	if v == len(d.values) {
		return node
	}
	var children []circuit.Node
	for a := range d.f.Domains[v] {
		d.values[v] = a
		children = append(children, d.b.Product(d.b.Leaf(v, a), d.from(v+1)))
	}
	return d.b.Product(node, d.b.Sum(children...))
}

// compiled is the circuit of a network without its evidence, as a part.
func compiled(ctx context.Context, p *enginetest.Problem) (*circuit.Compiled, error) {
	f, err := formula.FromNetwork(ctx, p.Base, 0)
	if fault.CodeOf(err) == fault.Unsupported && err != nil {
		return nil, enginetest.ErrDeclined
	}
	if err != nil {
		return nil, err
	}
	c, err := decide(f)
	if err != nil {
		return nil, err
	}
	return &circuit.Compiled{Form: c.Append(nil), Functional: !slices.Contains(f.Functional, false)}, nil
}

// circuitPart contracts a part of a circuit.
func circuitPart(
	ctx context.Context, net *btn.Network, of *circuit.Compiled, ask btn.Ask, want btn.Want, memory int64,
) (btn.Value, error) {
	return contraction.Part(ctx, problem.New(net, problem.Options{Memory: memory}), &circuits.Circuit{Of: of, Ask: ask}, want)
}

// answer is the value of a part as the suite compares it.
func answer(p *enginetest.Problem, w enginetest.Want, v btn.Value) (out enginetest.Value) {
	if out.Z = v.Z; v.Z.IsZero() {
		return out
	}
	if w.Marginals {
		at := 0
		for _, d := range p.Model.Domains {
			row := make([]scaled.Number, d)
			for a := range row {
				row[a] = scaled.Make(v.Marginals.Mant[at+a], v.Marginals.Exp)
			}
			out.Marginals = append(out.Marginals, enginetest.Normalised(v.Z, [][]scaled.Number{row})[0])
			at += d
		}
	}
	if w.Joint != nil {
		row := make([]scaled.Number, len(v.Joint.Mant))
		for k, x := range v.Joint.Mant {
			row[k] = scaled.Make(x, v.Joint.Exp)
		}
		out.Joint = enginetest.Normalised(v.Z, [][]scaled.Number{row})[0]
	}
	return out
}

// circuitEngine is the engine of circuits that are compiled in some way, which says what networks it contracts them on.
func circuitEngine(
	compile func(context.Context, *enginetest.Problem, enginetest.Want) (*circuit.Compiled, *btn.Network, error),
) enginetest.Engine {
	return enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (out enginetest.Value, err error) {
			of, net, err := compile(ctx, p, w)
			if err != nil {
				return out, err
			}
			v, err := circuitPart(ctx, net, of, "", btn.Want{Marginals: w.Marginals, Joint: w.Joint}, w.Memory)
			if err != nil {
				return out, err
			}
			return answer(p, w, v), nil
		},
		Assign: func(
			ctx context.Context, p *enginetest.Problem, samples int, w enginetest.Want,
		) (out enginetest.Assigned, err error) {
			of, net, err := compile(ctx, p, w)
			if err != nil {
				return out, err
			}
			best, err := circuitPart(ctx, net, of, btn.AskMPE, btn.Want{}, 0)
			if fault.CodeOf(err) == fault.Unsupported && err != nil {
				return out, enginetest.ErrDeclined
			}
			if err != nil {
				return out, err
			}
			drawn, err := circuitPart(ctx, net, of, btn.AskSamples, btn.Want{Samples: samples, Seed: p.Seed}, 0)
			if err != nil || best.Found == nil || drawn.Drawn == nil {
				return out, err
			}
			out.Best, out.Ln = best.Found.Values, best.Found.Weight.LogAbs()
			n := len(drawn.Drawn.Values) / samples
			for k := range samples {
				out.Drawn = append(out.Drawn, drawn.Drawn.Values[k*n:][:n])
			}
			return out, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Signs:       "circuits have numbers of at least 0",
			enginetest.Maps:        "circuits are of networks without maps",
			enginetest.Expressions: "parts are of networks",
			enginetest.Slices:      "a circuit is evaluated whole",
			enginetest.Threads:     "it runs in one goroutine",
		},
	}
}

// declined says that a network is none for circuits.
func declined(err error) error {
	if err != nil && fault.CodeOf(err) == fault.Unsupported {
		return enginetest.ErrDeclined
	}
	return err
}

// TestCircuitEngine: circuits are compiled without evidence, which enters by weights.
func TestCircuitEngine(t *testing.T) {
	e := circuitEngine(func(ctx context.Context, p *enginetest.Problem, _ enginetest.Want) (*circuit.Compiled, *btn.Network, error) {
		of, err := compiled(ctx, p)
		return of, p.Network, err
	})
	e.Lacks[enginetest.OverBudget] = "the circuit exists: see TestCircuitMemory"
	e.Lacks[enginetest.Cancelled] = "a decision on every variable of a grid is no circuit of it"
	enginetest.Exercise(t, e)
}

// TestEliminatedCircuitEngine: circuits as they are compiled, of narrow networks along an elimination order.
func TestEliminatedCircuitEngine(t *testing.T) {
	enginetest.Exercise(t, circuitEngine(
		func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (*circuit.Compiled, *btn.Network, error) {
			of, err := logic.Eliminate(ctx, p.Base, logic.Options{Memory: w.Memory})
			if of == nil && err == nil {
				of, _, err = logic.Search(ctx, p.Base, logic.Options{Memory: w.Memory})
			}
			return of, p.Network, declined(err)
		}))
}

// TestSearchedCircuitEngine: circuits as they are compiled, by a search.
func TestSearchedCircuitEngine(t *testing.T) {
	enginetest.Exercise(t, circuitEngine(
		func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (*circuit.Compiled, *btn.Network, error) {
			_, of, err := logic.Sum(ctx, p.Base, logic.Options{Memory: w.Memory})
			return of, p.Network, declined(err)
		}))
}

// TestParametricCircuitEngine: circuits with the numbers of the factors among their weights.
func TestParametricCircuitEngine(t *testing.T) {
	compile := func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (*circuit.Compiled, *btn.Network, error) {
		net, err := reparam.Build(ctx, p.Model, reparam.Options{Parametric: true})
		if err != nil {
			return nil, nil, err
		}
		of, _, err := logic.CompileParameters(ctx, net, logic.Options{Memory: w.Memory})
		if err != nil {
			return nil, nil, declined(err)
		}
		net, err = net.Condition(p.Evidence)
		return of, net, err
	}
	e := circuitEngine(compile)
	e.Differentiate = func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (out []scaled.Number, err error) {
		of, net, err := compile(ctx, p, w)
		if err != nil {
			return nil, err
		}
		v, err := circuitPart(ctx, net, of, "", btn.Want{Derivatives: true}, w.Memory)
		if err != nil {
			return nil, err
		}
		for k := range v.Derivatives.Mant {
			out = append(out, v.Derivatives.Number(k))
		}
		return out, nil
	}
	e.Lacks[enginetest.Assignments] = "sums of terms and counters are variables of their own here"
	enginetest.Exercise(t, e)
}

// TestCircuitMemory: passes that do not fit are refused.
func TestCircuitMemory(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 0}}},
	}}
	p := enginetest.NewProblem(t, m, factorgraph.Evidence{}, reparam.Options{}, 1)
	of, err := compiled(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := circuitPart(t.Context(), p.Network, of, "", btn.Want{}, 16); fault.CodeOf(err) != fault.OverBudget || err == nil {
		t.Errorf("got %v, want over_budget", err)
	}
	if _, err := circuitPart(t.Context(), p.Network, of, "", btn.Want{Derivatives: true}, 0); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("derivatives: got %v, want unsupported", err)
	}
}
