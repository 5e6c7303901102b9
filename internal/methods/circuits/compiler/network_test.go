package compiler

// Networks of reference models, as formulas.

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weightsOf returns the weights of the network's variables, by atom of f.
func weightsOf(net *btn.Network, f *formula.Formula) []scaled.Number {
	w := make([]scaled.Number, f.Atoms())
	for i := range w {
		w[i] = scaled.One
	}
	for i, v := range net.Variables {
		for a, x := range net.Links[v.Link].T.(*tensor.CP).Weights {
			w[f.FirstAtom(i)+a] = scaled.FromFloat(x)
		}
	}
	return w
}

// quickModels take a fraction of a second.
var quickModels = []string{
	"uai/2bitcomp_5.cnf", "uai/Promedus_11", "uai/Promedus_13", "uai/Promedus_29", "uai/c432.isc.cnf", "uai/log-1.cnf", "uai/relational_3",
}

func TestReferenceModels(t *testing.T) {
	for _, name := range reference.Names(t, "uai") {
		if !isSelected(name, quickModels) || name == "uai/sat-grid-pbl-0010.cnf" { // that has a factor that is 0 everywhere
			continue
		}
		net := reference.Network(t, name)
		f, err := formula.FromNetwork(context.Background(), net, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx, cancel := deadline()
		start := cputime.OfProcess()
		got, err := Compile(ctx, f, Options{Weights: weightsOf(net, f)})
		cancel()
		took := (cputime.OfProcess() - start).Round(time.Millisecond)
		if fault.CodeOf(err) == fault.Deadline {
			t.Logf("%s: not in %v: %d clauses, %d tables, %+v", name, took, len(f.Clauses), len(f.Tables), got.Stats)
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		t.Logf("%s: %v: %d clauses, %d tables, %+v", name, took, len(f.Clauses), len(f.Tables), got.Stats)
		want, tolerance := reference.Log10Z(t, name)
		if z := got.Z.Mul(net.Scale).Log10Abs(); math.Abs(z-want) > tolerance {
			t.Errorf("%s: log10 Z = %v, the solution is %v", name, z, want)
		}
	}
}
