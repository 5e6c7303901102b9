package compiler

// Random families of hard formulas, for tuning and measuring the search.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// clauses collects clauses over variables of two values, numbered as in DIMACS: from 1, below 0 where negated.
type clauses struct {
	vars int
	list [][]int
}

// fresh returns a new variable.
func (c *clauses) fresh() int {
	c.vars++
	return c.vars
}

func (c *clauses) add(literals ...int) { c.list = append(c.list, literals) }

// table returns a table of new variables.
func (c *clauses) table(rows, columns int) [][]int {
	out := make([][]int, rows)
	for i := range out {
		for range columns {
			out[i] = append(out[i], c.fresh())
		}
	}
	return out
}

// most says that at most one of the literals holds.
func (c *clauses) most(literals ...int) {
	for i := range literals {
		for _, l := range literals[:i] {
			c.add(-literals[i], -l)
		}
	}
}

// formula returns the clauses as a formula, with weights drawn for some variables.
func (c *clauses) formula(t testing.TB, r *rand.Rand) (*formula.Formula, []scaled.Number) {
	t.Helper()
	f := formula.Formula{Links: c.vars, Scale: scaled.One}
	var weights []scaled.Number
	for range c.vars {
		f.Domains = append(f.Domains, 2)
		w := 0.5
		if r.IntN(2) == 0 {
			w = 0.05 + 0.9*r.Float64()
		}
		weights = append(weights, scaled.FromFloat(1-w), scaled.FromFloat(w))
	}
	for _, literals := range c.list {
		var clause []formula.Literal
		for _, l := range literals {
			if l > 0 {
				clause = append(clause, formula.Literal(4*l-2))
			} else {
				clause = append(clause, formula.Literal(-4*l-4))
			}
		}
		f.Clauses = append(f.Clauses, clause)
	}
	out, err := formula.New(f)
	if err != nil {
		t.Fatal(err)
	}
	return out, weights
}

// cubic draws clauses of three literals.
func cubic(r *rand.Rand, vars int, ratio float64) *clauses {
	c := &clauses{vars: vars}
	for range int(ratio * float64(vars)) {
		v := r.Perm(vars)[:3]
		for i := range v {
			v[i] = (v[i] + 1) * (2*r.IntN(2) - 1)
		}
		c.add(v...)
	}
	return c
}

// conjunctions are variables that are conjunctions of some of the others, as the gates of diagnosis are.
func conjunctions(r *rand.Rand, causes, effects, each int) *clauses {
	c := &clauses{vars: causes}
	for range effects {
		y := c.fresh()
		long := []int{y}
		for _, x := range r.Perm(causes)[:each] {
			c.add(-y, x+1)
			long = append(long, -x-1)
		}
		c.add(long...)
	}
	return c
}

// colouring gives each of some variables one of some values, which pairs of variables may not share, and takes some values from each.
func colouring(r *rand.Rand, vars, values int, density float64) *clauses {
	c := &clauses{}
	x := c.table(vars, values)
	for u := range vars {
		c.add(x[u]...)
		c.most(x[u]...)
		for v := range u {
			for a := range values {
				if r.Float64() < density {
					c.add(-x[u][a], -x[v][(a+r.IntN(2))%values])
				}
			}
		}
	}
	return c
}

// logistics is the planning of deliveries: vehicles drive between places, load and unload; frame
// axioms explain every change.
func logistics(r *rand.Rand, packages, vehicles, places, steps int) *clauses {
	c := &clauses{}
	var at, in [][][]int // by time: packages at places, packages in vehicles
	var stands [][][]int // by time: vehicles at places
	for range steps + 1 {
		at = append(at, c.table(packages, places))
		in = append(in, c.table(packages, vehicles))
		stands = append(stands, c.table(vehicles, places))
	}
	for t := range steps {
		for k := range vehicles {
			for to := range places {
				came := []int{-stands[t+1][k][to], stands[t][k][to]}
				for from := range places {
					if from == to {
						continue
					}
					drive := c.fresh()
					came = append(came, drive)
					c.add(-drive, stands[t][k][from])
					c.add(-drive, stands[t+1][k][to])
					c.add(-drive, -stands[t+1][k][from])
				}
				c.add(came...)
			}
		}
		for p := range packages {
			appears, vanishes := make([][]int, places), make([][]int, places)
			for k := range vehicles {
				boards, leaves := []int{-in[t+1][p][k], in[t][p][k]}, []int{in[t+1][p][k], -in[t][p][k]}
				for l := range places {
					load, unload := c.fresh(), c.fresh()
					for _, need := range []int{at[t][p][l], stands[t][k][l], stands[t+1][k][l], in[t+1][p][k], -at[t+1][p][l]} {
						c.add(-load, need)
					}
					for _, need := range []int{in[t][p][k], stands[t][k][l], stands[t+1][k][l], at[t+1][p][l], -in[t+1][p][k]} {
						c.add(-unload, need)
					}
					boards, leaves = append(boards, load), append(leaves, unload)
					appears[l], vanishes[l] = append(appears[l], unload), append(vanishes[l], load)
				}
				c.add(boards...)
				c.add(leaves...)
			}
			for l := range places {
				c.add(append(appears[l], -at[t+1][p][l], at[t][p][l])...)
				c.add(append(vanishes[l], at[t+1][p][l], -at[t][p][l])...)
			}
		}
	}
	for t := range steps + 1 {
		for p := range packages {
			c.most(append(append([]int{}, at[t][p]...), in[t][p]...)...)
		}
		for k := range vehicles {
			c.most(stands[t][k]...)
		}
	}
	for p := range packages {
		from := r.IntN(places)
		c.add(at[0][p][from])
		c.add(at[steps][p][(from+1+r.IntN(places-1))%places])
	}
	for k := range vehicles {
		c.add(stands[0][k][r.IntN(places)])
	}
	return c
}

// synthesis looks for circuits of some gates with a given function of some inputs: each gate is any function of two wires before it.
func synthesis(function func(x int) bool, inputs, gates int) *clauses {
	c := &clauses{}
	rows := 1 << inputs
	var wires [][]int // by wire: its value in every row
	for i := range inputs {
		wire := make([]int, rows)
		for x := range wire {
			wire[x] = c.fresh()
			if x>>i&1 == 1 {
				c.add(wire[x])
			} else {
				c.add(-wire[x])
			}
		}
		wires = append(wires, wire)
	}
	for range gates {
		kind := c.table(1, 4)[0] // the gate's value by its two inputs
		var taken [2][]int
		var ends [2][]int
		for e := range taken {
			taken[e] = c.table(1, len(wires))[0]
			ends[e] = c.table(1, rows)[0]
			c.add(taken[e]...)
			c.most(taken[e]...)
			for w, pick := range taken[e] {
				for x := range rows {
					c.add(-pick, -wires[w][x], ends[e][x])
					c.add(-pick, wires[w][x], -ends[e][x])
				}
			}
		}
		for i := range taken[0] {
			for j := range i + 1 {
				c.add(-taken[0][i], -taken[1][j]) // the first end is the earlier wire
			}
		}
		out := c.table(1, rows)[0]
		for x := range rows {
			for k, is := range kind {
				a, b := ends[0][x]*(1-2*(k&1)), ends[1][x]*(1-2*(k>>1))
				c.add(a, b, -is, out[x])
				c.add(a, b, is, -out[x])
			}
		}
		wires = append(wires, out)
	}
	for x, wire := range wires[len(wires)-1] {
		if function(x) {
			c.add(wire)
		} else {
			c.add(-wire)
		}
	}
	return c
}

// multiplier multiplies two numbers of some bits, of whose product some bits are known.
func multiplier(r *rand.Rand, bits, known int) *clauses {
	c := &clauses{}
	x := c.table(2, bits)
	and := func(a, b int) int {
		y := c.fresh()
		c.add(-y, a)
		c.add(-y, b)
		c.add(y, -a, -b)
		return y
	}
	xor := func(a, b int) int {
		y := c.fresh()
		c.add(-y, a, b)
		c.add(-y, -a, -b)
		c.add(y, -a, b)
		c.add(y, a, -b)
		return y
	}
	var sum []int // the bits of the running sum, from the next row's lowest bit on
	var product []int
	for i, a := range x[0] {
		var row []int
		for _, b := range x[1] {
			row = append(row, and(a, b))
		}
		if i == 0 {
			product, sum = append(product, row[0]), row[1:]
			continue
		}
		var next []int
		carry := 0
		for k, b := range row {
			bits := []int{b}
			if k < len(sum) {
				bits = append(bits, sum[k])
			}
			if carry != 0 {
				bits = append(bits, carry)
			}
			digit, over := bits[0], 0
			for _, b := range bits[1:] {
				both := and(digit, b)
				digit = xor(digit, b)
				if over == 0 {
					over = both
				} else {
					over = xor(over, both) // never both
				}
			}
			next, carry = append(next, digit), over
		}
		if carry != 0 {
			next = append(next, carry)
		}
		product, sum = append(product, next[0]), next[1:]
	}
	product = append(product, sum...)
	p := (1 + r.IntN(1<<bits-1)) * (1 + r.IntN(1<<bits-1))
	for _, k := range r.Perm(len(product))[:known] {
		if p>>k&1 == 1 {
			c.add(product[k])
		} else {
			c.add(-product[k])
		}
	}
	return c
}

// pebbles is a triangle of places that are pebbled when the two below are, for pebbles of two colours.
func pebbles(rows int) *clauses {
	c := &clauses{}
	var below [][]int
	for i := rows; i > 0; i-- {
		row := c.table(i, 2)
		for j, p := range row {
			if below == nil {
				c.add(p...)
				continue
			}
			for _, a := range below[j] {
				for _, b := range below[j+1] {
					c.add(-a, -b, p[0], p[1])
				}
			}
		}
		below = row
	}
	return c
}

// families are formulas of each kind, by name.
var families = map[string]func(r *rand.Rand) *clauses{
	"cubic":        func(r *rand.Rand) *clauses { return cubic(r, 75, 2.5) },
	"conjunctions": func(r *rand.Rand) *clauses { return conjunctions(r, 60, 60, 4) },
	"colouring":    func(r *rand.Rand) *clauses { return colouring(r, 20, 7, 0.4) },
	"logistics":    func(r *rand.Rand) *clauses { return logistics(r, 5, 2, 5, 6) },
	"synthesis":    func(*rand.Rand) *clauses { return synthesis(func(x int) bool { return x%4 < x/4 }, 4, 4) },
	"multiplier":   func(r *rand.Rand) *clauses { return multiplier(r, 7, 7) },
	"pebbles":      func(*rand.Rand) *clauses { return pebbles(14) },
}

// BenchmarkFamilies sums formulas of each family, simplified: steps are counted work, and the same on every machine.
func BenchmarkFamilies(b *testing.B) {
	for name, family := range families {
		for seed := range uint64(3) {
			b.Run(fmt.Sprintf("%s/%d", name, seed), func(b *testing.B) {
				r := rand.New(rand.NewPCG(seed, 31))
				f, weights := family(r).formula(b, r)
				var did Stats
				for b.Loop() {
					got, err := sumSimplified(context.Background(), f, weights, Options{})
					if err != nil {
						b.Fatal(err)
					}
					did = got.Stats
				}
				b.ReportMetric(float64(did.Work), "steps")
				b.ReportMetric(float64(did.Variables), "variables")
			})
		}
	}
}

// sumSimplified simplifies a formula and sums the result.
func sumSimplified(ctx context.Context, f *formula.Formula, weights []scaled.Number, o Options) (Result, error) {
	reduced, err := formula.Simplify(ctx, f, 0)
	if err != nil {
		return Result{}, err
	}
	o.Weights = make([]scaled.Number, reduced.Formula.Atoms())
	for i := range o.Weights {
		o.Weights[i] = scaled.One
		for _, a := range reduced.StandsFor[i] {
			o.Weights[i] = o.Weights[i].Mul(weights[a])
		}
	}
	got, err := Compile(ctx, reduced.Formula, o)
	for _, a := range reduced.FixedAtoms {
		got.Z = got.Z.Mul(weights[a])
	}
	return got, err
}
