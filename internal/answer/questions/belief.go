package questions

// Believing: Jeffrey's rule, from the demands in which the believed variables are observed at each combination of their values.

import (
	"fmt"
	"iter"
	"math"
	"reflect"

	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// belief gives variables B the posteriors that are believed. Of the demands with B at b, in row-major sequence, Z_b are the values: P(b) =
// Z_b / Σ Z_b, r(b) is the distribution with the believed marginals that is nearest to P(b) (fit), and every answer is Σ_b r(b) times that
// of demand b.
var belief = kind{
	name: "belief",
	demands: func(_ []int, q *query.Query) iter.Seq[btn.Demand] {
		return func(yield func(btn.Demand) bool) {
			if len(q.Believe) == 0 {
				return
			}
			want := btn.Want{Marginals: q.Marginals || len(q.Targets) > 0, Targets: q.Targets, Joint: q.Joint}
			for values := range combinations(q.Believe) {
				e := evidenceOf(q)
				for k, b := range q.Believe {
					e = observe(e, b.Var, values[k])
				}
				if !yield(btn.Demand{Evidence: e, Want: want}) {
					return
				}
			}
		}
	},
	answer: func(a *answer) {
		if len(a.asked.Query.Believe) == 0 {
			return
		}
		f, why := believe(a)
		if why != "" {
			a.warn("no answer under the beliefs: " + why)
			return
		}
		if a.asked.Query.Over > 0 {
			return // event has the answer
		}
		a.to.Belief = f.belief
		a.mix(f.shares)
		if !f.belief.Exact {
			a.to.Exact = false
			a.warn("under the beliefs not everything was computed exactly: their answers are estimates of unknown quality")
		}
	},
}

// combinations yields the combinations of values of the variables of beliefs, the last variable fastest.
func combinations(beliefs []factorgraph.Likelihood) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		values := make([]int, len(beliefs))
		for {
			if !yield(values) {
				return
			}
			k := len(values) - 1
			for ; k >= 0; k-- {
				if values[k]++; values[k] < len(beliefs[k].Weights) {
					break
				}
				values[k] = 0
			}
			if k < 0 {
				return
			}
		}
	}
}

// fitted is a distribution of the believed variables.
type fitted struct {
	shares []float64 // r(b)
	belief *query.Belief
}

// believe fits the distribution of the believed variables of a query. why says why there is none.
func believe(a *answer) (f fitted, why string) {
	extra := a.servedTo("belief")
	beliefs := a.asked.Query.Believe
	z := make([]scaled.Number, len(extra))
	exact := true
	for b := range extra {
		if r := &extra[b].Result; r.Status != query.StatusOK {
			return f, r.Error.Message
		}
		z[b] = extra[b].Z
		exact = exact && extra[b].Result.Exact
	}
	p := shares(z)
	if p == nil {
		return f, "the queries with the believed variables observed have no positive total"
	}
	f, why = fit(p, beliefs)
	if why == "" {
		f.belief.Exact = exact
	}
	return f, why
}

// Proportional fitting ends when no marginal misses its belief by more than fittedTo, or after mostRounds or mostScaled steps; beliefs
// that are missed by more than mostMissed contradict each other.
const (
	fittedTo   = 1e-13
	mostRounds = 10_000
	mostScaled = 1 << 27
	mostMissed = 1e-6
)

// fit returns the distribution with the believed marginals that is nearest to p, which is over their combinations (iterative proportional
// fitting, Deming and Stephan): each round scales by the belief in each variable in turn.
func fit(p []float64, beliefs []factorgraph.Likelihood) (f fitted, why string) {
	f.shares = append([]float64{}, p...)
	f.belief = &query.Belief{Likelihoods: make([][]float64, len(beliefs))}
	want := make([][]float64, len(beliefs))
	for k, b := range beliefs {
		sum := 0.0
		for _, w := range b.Weights {
			sum += w
		}
		want[k] = make([]float64, len(b.Weights))
		f.belief.Variables = append(f.belief.Variables, b.Var)
		f.belief.Likelihoods[k] = make([]float64, len(b.Weights))
		for x, w := range b.Weights {
			want[k][x], f.belief.Likelihoods[k][x] = w/sum, 1
		}
	}
	missed, rounds := math.Inf(1), min(mostRounds, mostScaled/(len(p)*len(beliefs)))
	for missed > fittedTo && f.belief.Rounds < rounds {
		f.belief.Rounds++
		for k := range beliefs {
			have := marginal(f.shares, beliefs, k)
			for x, w := range want[k] {
				switch {
				case w == 0:
					f.belief.Likelihoods[k][x] = 0
				case have[x] == 0:
					return f, fmt.Sprintf(
						"variable %d = %d is believed with probability %.6g, and is impossible beside the rest", beliefs[k].Var, x, w,
					)
				default:
					f.belief.Likelihoods[k][x] *= w / have[x]
				}
			}
			scaleBy(f.shares, beliefs, k, want[k], have)
		}
		missed = 0
		for k := range beliefs {
			for x, have := range marginal(f.shares, beliefs, k) {
				missed = max(missed, math.Abs(have-want[k][x]))
			}
		}
	}
	f.belief.Missed = missed
	if missed > mostMissed {
		return f, fmt.Sprintf("the beliefs contradict each other: after %d rounds of fitting one is missed by %.2g", f.belief.Rounds, missed)
	}
	for _, weights := range f.belief.Likelihoods {
		most := 0.0
		for _, w := range weights {
			most = max(most, w)
		}
		for x := range weights {
			weights[x] /= most
		}
	}
	return f, ""
}

// marginal returns the probabilities of the values of variable k.
func marginal(p []float64, beliefs []factorgraph.Likelihood, k int) []float64 {
	sums := make([]float64, len(beliefs[k].Weights))
	b := 0
	for values := range combinations(beliefs) {
		sums[values[k]] += p[b]
		b++
	}
	return sums
}

// scaleBy scales the distribution by want over have of variable k.
func scaleBy(p []float64, beliefs []factorgraph.Likelihood, k int, want, have []float64) {
	b := 0
	for values := range combinations(beliefs) {
		if x := values[k]; want[x] == 0 {
			p[b] = 0
		} else {
			p[b] *= want[x] / have[x]
		}
		b++
	}
}

// mix writes the marginals and the joint marginal as mixtures of those of the extra demands.
func (a *answer) mix(weights []float64) {
	var rows [][]float64
	var cells []float64
	for b, share := range weights {
		if share == 0 {
			continue
		}
		t := &a.extra[b]
		if rows == nil && t.Marginals != nil {
			rows = make([][]float64, len(t.Marginals))
			for i := range rows {
				rows[i] = make([]float64, len(t.Marginals[i]))
			}
		}
		for i := range rows {
			for x, p := range t.Marginals[i] {
				rows[i][x] += share * p
			}
		}
		if cells == nil && t.Joint != nil {
			cells = make([]float64, len(t.Joint))
			a.to.Joint = &query.Joint{Variables: t.Want.Joint, Shape: t.Shape, P: cells}
		}
		for i := range cells {
			cells[i] += share * t.Joint[i]
		}
	}
	a.to.Marginals = posteriorsOf(rows, a.asked.Query.Targets)
}

// answerUnderBeliefs writes P(event) under the beliefs of the query that it is asked over, or why there is none.
func answerUnderBeliefs(event, over *answer) {
	p, exact, why := believedProbability(event, over)
	if why == "" && p > 1 {
		if exceeds := p - 1; exceeds > additive.ProbabilityRounding {
			why = fmt.Sprintf("the estimates give the event a probability of %.6g", p)
		}
		p = 1
	}
	if why != "" {
		event.warn("no ratio: " + why)
		return
	}
	event.to.Ratio = &query.Ratio{P: &p, Ln: finite(math.Log(p))}
	if !exact {
		event.to.Exact = false
		event.warn("the probability of the event is an estimate of unknown quality: under the beliefs not everything was computed exactly")
	}
}

// believedProbability returns Σ_b r(b) Z_b(event and evidence) / Z_b(evidence), and whether every term is exact. If there is none, why
// says why.
func believedProbability(event, over *answer) (p float64, exact bool, why string) {
	switch {
	case !reflect.DeepEqual(event.asked.Query.Believe, over.asked.Query.Believe):
		return 0, false, "the two queries do not believe the same"
	case !event.asked.IsEvent:
		return 0, false, "the query does not observe all that the one does which it is asked over"
	}
	f, why := believe(over)
	if why != "" {
		return 0, false, why
	}
	with, without := event.servedTo("belief"), over.servedTo("belief")
	if len(with) != len(without) {
		return 0, false, "a query with the believed variables observed is missing"
	}
	exact = f.belief.Exact
	for b, share := range f.shares {
		if share == 0 {
			continue
		}
		if r := &with[b].Result; r.Status != query.StatusOK {
			return 0, false, r.Error.Message
		}
		exact = exact && with[b].Result.Exact
		p += share * with[b].Z.Div(without[b].Z).Float64()
	}
	if !(p >= 0) {
		return 0, false, fmt.Sprintf("the estimates give the event a probability of %.6g", p)
	}
	return p, exact, ""
}
