package plan_test

// Models of few linear statistics with couplings of either sign, beside sums in 60 digits: every answer is exact, or as near as it says.

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// digits is the precision of sums, bits.
const digits = 220

func wideFloat(x float64) *big.Float { return new(big.Float).SetPrec(digits).SetFloat64(x) }

// wideExp returns e^x by its series, after x is halved until it is small.
func wideExp(x *big.Float) *big.Float {
	const more = 400
	y := new(big.Float).SetPrec(more).Set(x)
	halvings := max(0, y.MantExp(nil)+24)
	y.SetMantExp(y, -halvings)
	sum, term := new(big.Float).SetPrec(more).SetInt64(1), new(big.Float).SetPrec(more).SetInt64(1)
	for k := range 14 {
		term.Quo(term.Mul(term, y), new(big.Float).SetInt64(int64(k+1)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetPrec(digits)
}

// linear is a model Π_i w_i(x_i) Π_{i<j} e^{Σ_k c_k N_k(i, x_i) N_k(j, x_j)}, N in units: the largest multiples of a statistic are small
// integers where the units are 1.
type linear struct {
	domains  []int
	coupling []float64
	n        [][][]int64 // by variable, value and statistic
	unit     [][]float64 // by variable and statistic
	w        [][]float64
	// apart is how far ln Z of the rounded tables may be from that of the formula.
	apart float64
}

// model returns the plain tables.
func (l *linear) model() *factorgraph.Model {
	m := &factorgraph.Model{Domains: l.domains}
	add := func(scope []int, values []float64) {
		t := &tensor.Dense{Data: values}
		for _, v := range scope {
			t.Shape = append(t.Shape, l.domains[v])
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	l.apart = 0
	for i := range l.domains {
		add([]int{i}, l.w[i])
		for j := range i {
			var values []float64
			worst := 0.0
			for a := range l.domains[j] {
				for b := range l.domains[i] {
					x, size := 0.0, 0.0
					for k, c := range l.coupling {
						own := c * float64(l.n[j][a][k]) * l.unit[j][k] * float64(l.n[i][b][k]) * l.unit[i][k]
						x, size = x+own, size+math.Abs(own)
					}
					values = append(values, math.Exp(x))
					worst = max(worst, 1+4*size)
				}
			}
			l.apart += math.Ldexp(worst, -53)
			add([]int{j, i}, values)
		}
	}
	return m
}

// classes are the variables of one unit by number: unit 0 are those of the units of the first variable.
func (l *linear) classes() (class []int, units [][]float64) {
	for i := range l.domains {
		c := 0
		for ; c < len(units); c++ {
			same := true
			for k, u := range l.unit[i] {
				same = same && units[c][k] == u
			}
			if same {
				break
			}
		}
		if c == len(units) {
			units = append(units, l.unit[i])
		}
		class = append(class, c)
	}
	return class, units
}

// statisticSums are the sums of N by class and statistic.
type statisticSums [6]int32

// counted returns ln Z and the marginal of the first variable under evidence, by a sum over the sums of integers.
func (l *linear) counted(evidence map[int]int) (lnZ float64, marginal []float64) {
	class, units := l.classes()
	ks := len(l.coupling)
	weight := func(i, a int) *big.Float {
		w := wideFloat(l.w[i][a])
		for k, c := range l.coupling {
			x := wideFloat(-0.5 * c)
			for range 2 {
				x.Mul(x, wideFloat(float64(l.n[i][a][k])))
				x.Mul(x, wideFloat(l.unit[i][k]))
			}
			w.Mul(w, wideExp(x))
		}
		return w
	}
	states := map[statisticSums]*big.Float{{}: wideFloat(1)}
	next := func(i, a int, to map[statisticSums]*big.Float) {
		w := weight(i, a)
		for s, x := range states {
			for k, y := range l.n[i][a] {
				s[class[i]*ks+k] += int32(y)
			}
			x := new(big.Float).SetPrec(digits).Mul(x, w)
			if y := to[s]; y != nil {
				y.Add(y, x)
			} else {
				to[s] = x
			}
		}
	}
	for i := len(l.domains) - 1; i > 0; i-- {
		to := map[statisticSums]*big.Float{}
		for a := range l.domains[i] {
			if x, given := evidence[i]; !given || x == a {
				next(i, a, to)
			}
		}
		states = to
	}
	known := map[string]*big.Float{}
	tail := func(s statisticSums) *big.Float {
		out := wideFloat(1)
		for k, c := range l.coupling {
			sum := wideFloat(0)
			for u := range units {
				sum.Add(sum, new(big.Float).Mul(wideFloat(units[u][k]), wideFloat(float64(s[u*ks+k]))))
			}
			name := fmt.Sprint(k, sum.Text('p', 0))
			e := known[name]
			if e == nil {
				x := wideFloat(0.5 * c)
				e = wideExp(x.Mul(x.Mul(x, sum), sum))
				known[name] = e
			}
			out.Mul(out, e)
		}
		return out
	}
	z := wideFloat(0)
	var shares []*big.Float
	for a := range l.domains[0] {
		to, share := map[statisticSums]*big.Float{}, wideFloat(0)
		if x, given := evidence[0]; !given || x == a {
			next(0, a, to)
		}
		for s, x := range to {
			share.Add(share, new(big.Float).Mul(x, tail(s)))
		}
		shares = append(shares, share)
		z.Add(z, share)
	}
	for _, share := range shares {
		p, _ := new(big.Float).Quo(share, z).Float64()
		marginal = append(marginal, p)
	}
	return oracle.Ln(z), marginal
}

// dyadic is a number of a few bits near x, so that its products with small integers are exact.
func dyadic(x float64) float64 {
	m, e := math.Frexp(x)
	return math.Ldexp(math.Round(m*1024), e-10)
}

// drawLinear draws a model of a kind of up to so many variables.
func drawLinear(rng *rand.Rand, kind string, most int) *linear {
	l := &linear{}
	n := int(12 * math.Exp(rng.Float64()*math.Log(float64(most)/12)))
	ks, d, reals := 1, 2, 1
	spin := func() []int64 { return []int64{1, -1} }
	switch kind {
	case "hopfield":
		ks = 1 + rng.IntN(4)
		n = min(n, []int{1000, 120, 44, 26}[ks-1])
	case "partition":
		largest := 2 + rng.Int64N(300)
		n = min(n, int(20000/largest))
		spin = func() []int64 { a := 1 + rng.Int64N(largest); return []int64{a, -a} }
	case "multiples":
		ks = 1 + rng.IntN(2)
		n = min(n, []int{300, 60}[ks-1])
		spin = func() []int64 { a := rng.Int64N(7) - 3; return []int64{a, -a} }
	case "values":
		d, ks = 3, 1+rng.IntN(2)
		n = min(n, []int{200, 40}[ks-1])
		spin = func() []int64 { return []int64{rng.Int64N(5) - 2, rng.Int64N(5) - 2, rng.Int64N(5) - 2} }
	case "reals":
		reals = 2 + rng.IntN(2)
		n = min(n, []int{0, 0, 300, 75}[reals])
	case "mixed":
		ks, reals, n = 2, 2, min(n, 36)
	case "small":
		ks, reals, n = 1+rng.IntN(3), 0, 12+rng.IntN(3)
	}
	fields := rng.Float64() * 2
	norms := make([]float64, ks)
	for range ks {
		c := rng.NormFloat64() * math.Exp(2*rng.Float64()-0.5)
		switch {
		case kind == "partition":
			c = -math.Abs(c)
		case kind == "mixed":
			c = (1 - 2*float64(len(l.coupling))) * 3 * math.Abs(c)
		}
		l.coupling = append(l.coupling, c)
	}
	kinds := make([]float64, reals)
	for u := range kinds {
		kinds[u] = 1
		if u > 0 || kind == "reals" || kind == "mixed" {
			kinds[u] = math.Exp(rng.NormFloat64() / 2)
		}
	}
	for i := range n {
		l.domains = append(l.domains, d)
		own := make([][]int64, d)
		for range ks {
			y := spin()
			if sign := 1 - 2*rng.Int64N(2); sign < 0 {
				for a := range y {
					y[a] *= sign
				}
			}
			for a := range own {
				own[a] = append(own[a], y[a])
			}
		}
		l.n = append(l.n, own)
		unit := make([]float64, ks)
		for k := range unit {
			if unit[k] = rng.NormFloat64(); reals > 0 {
				unit[k] = kinds[i%reals]
			}
			norms[k] += math.Pow(float64(own[0][k])*unit[k], 2)
		}
		l.unit = append(l.unit, unit)
		w := make([]float64, d)
		for a := range w {
			w[a] = math.Exp(fields * rng.NormFloat64())
		}
		l.w = append(l.w, w)
	}
	for k := range l.coupling {
		l.coupling[k] = dyadic(l.coupling[k] / max(norms[k], 1))
	}
	return l
}

// TestLowRankOfEitherSign: ln Z and a marginal of random models by the exact way, and of some by the way that the planner chooses. An
// exact answer is within its bounds, another within three times what it states, and none is a negative total.
func TestLowRankOfEitherSign(t *testing.T) {
	const long = 1000
	rounds, most := nightly.Rounds(4, 170), nightly.Rounds(60, long)
	for _, kind := range []string{"hopfield", "partition", "multiples", "values", "reals", "mixed", "small"} {
		t.Run(kind, func(t *testing.T) {
			exact, stated, none := 0, 0, map[string]int{}
			for seed := range uint64(rounds) {
				rng := rand.New(rand.NewPCG(seed, 52))
				l := drawLinear(rng, kind, most)
				m := l.model()
				evidence, given := factorgraph.Evidence{}, map[int]int{}
				for range rng.IntN(2) * rng.IntN(len(l.domains)) / 2 {
					v := rng.IntN(len(l.domains)-1) + 1
					if _, twice := given[v]; !twice {
						given[v] = rng.IntN(l.domains[v])
						evidence.Hard = append(evidence.Hard, factorgraph.Observation{Var: v, Value: given[v]})
					}
				}
				slices.SortFunc(evidence.Hard, func(a, b factorgraph.Observation) int { return a.Var - b.Var })
				var want float64
				var share []float64
				if kind == "small" {
					all := oracle.SumModel(m, evidence)
					want, share = oracle.Ln(all.Z), all.Marginals()[0]
					l.apart = 0
				} else {
					want, share = l.counted(given)
				}
				for _, method := range []query.Method{query.MethodExact, query.MethodAuto} {
					if method == query.MethodAuto && seed%8 > 0 {
						continue
					}
					settings := query.Settings{Method: method, Seed: seed}
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					results, err := stage.Run(ctx, stage.Request{
						Model: m, Queries: []query.Query{{Evidence: evidence}, {Evidence: evidence, Marginals: true}}, Settings: settings,
					}, kept{})
					cancel()
					if err != nil {
						t.Fatal(err)
					}
					for q, r := range results {
						name := fmt.Sprintf("seed %d, n = %d, couplings %.3v, %s, query %d", seed, len(l.domains), l.coupling, method, q)
						if r.Error != nil {
							none[string(r.Error.Code)]++
							if method == query.MethodAuto || r.Error.Code != "over_budget" {
								t.Errorf("%s: %+v", name, r.Error)
							}
							continue
						}
						off := max(0, math.Abs(*r.LogZ-want)-l.apart)
						allowed, share3 := 0.0, 1e-10
						switch {
						case r.Exact:
							exact++
							allowed = *r.Bounds.Upper - *r.LogZ
							if b := r.Bounds; want > *b.Upper+l.apart || want < *b.Lower-l.apart {
								t.Errorf("%s: ln Z %v is exact in [%v, %v], want %v", name, *r.LogZ, *b.Lower, *b.Upper, want)
							}
						case r.Uncertainty != nil:
							stated++
							allowed = 3 * *r.Uncertainty
							if share3 = 1; r.MarginalUncertainty != nil {
								share3 = 3 * *r.MarginalUncertainty
							}
						default:
							allowed, share3 = math.Inf(1), 1
						}
						if !(off <= allowed) {
							t.Errorf("%s: ln Z %v, exact %v, off by %.2g, %.2g is allowed", name, *r.LogZ, r.Exact, off, allowed)
						}
						if r.Marginals == nil {
							continue
						}
						for a, p := range share {
							if off := math.Abs(r.Marginals[0].P[a] - p); off > share3+2*l.apart {
								t.Errorf("%s: P(0 = %d) = %v, exact %v, off by %.2g, %.2g is allowed", name, a, r.Marginals[0].P[a], r.Exact, off, share3)
							}
						}
					}
				}
			}
			t.Logf("%d exact, %d stated, no answer: %v", exact, stated, none)
			if exact < rounds {
				t.Errorf("%d of %d answers are exact", exact, 2*rounds)
			}
		})
	}
}
