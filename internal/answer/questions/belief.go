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

// belief asks for answers under beliefs: some variables B are given posteriors. A further demand observes B at each combination b of their
// values, in row-major sequence. Let Z_b be the value of demand b. Then
//
//	P(b) = Z_b / Σ Z_b,   r(b) = the distribution nearest to P(b) whose marginals are the beliefs (fit),
//
// and every answer is Σ_b r(b) times that of demand b.
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
			return // the kind event answers it
		}
		a.result.Belief = f.belief
		a.mix(f.shares)
		if !f.belief.Exact {
			a.result.Exact = false
			a.warn("under the beliefs not everything was computed exactly: their answers are estimates of unknown quality")
		}
	},
}

// combinations yields the combinations of values of the variables of beliefs, the last variable fastest. The yielded slice is overwritten
// by the next combination.
func combinations(beliefs []factorgraph.Likelihood) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		values := make([]int, len(beliefs))
		for {
			if !yield(values) {
				return
			}
			// Count up by one: the last digit first, with a carry to the digit before it.
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

// fitted is a distribution of the believed variables whose marginals are the beliefs.
type fitted struct {
	shares []float64     // r(b), by combination
	belief *query.Belief // how the distribution was fitted, for the answer
}

// believe fits the distribution of the believed variables of a query to the beliefs. It begins with the distribution of these variables
// under the model: their combinations of values have probabilities proportional to the Z of the further demands of kind "belief", each of
// which observes one combination. If there is no such distribution, why is the reason in words; otherwise it is "".
func believe(a *answer) (f fitted, why string) {
	totals := a.furtherTotalsOf("belief")
	z := make([]scaled.Number, len(totals))
	isExact := true
	for b := range totals {
		if r := &totals[b].Result; r.Status != query.StatusOK {
			return f, r.Error.Message
		}
		z[b] = totals[b].Z
		isExact = isExact && totals[b].Result.Exact
	}
	p := distribution(z)
	if p == nil {
		return f, "the queries with the believed variables observed have no positive total"
	}
	f, why = fit(p, a.asked.Query.Believe)
	if why == "" {
		f.belief.Exact = isExact
	}
	return f, why
}

// Limits of proportional fitting.
const (
	fittedTo   = 1e-13   // it ends when no marginal misses its belief by more
	maxRounds  = 10_000  // rounds, each over all beliefs
	maxScaled  = 1 << 27 // probabilities scaled in all rounds together
	mostMissed = 1e-6    // beliefs that are missed by more contradict each other
)

// fit returns the distribution nearest to p (in relative entropy) whose marginals are the beliefs, by iterative proportional fitting
// (Deming and Stephan). p is over the combinations of values of the believed variables. If there is no such distribution, why is the reason
// in words; otherwise it is "". The likelihoods of f.belief are the factors by which fitting has multiplied the probability of each value
// of each variable, with the largest factor of a variable scaled to 1.
func fit(p []float64, beliefs []factorgraph.Likelihood) (f fitted, why string) {
	f.shares = append([]float64{}, p...)
	f.belief = &query.Belief{Likelihoods: make([][]float64, len(beliefs))}
	believed := make([][]float64, len(beliefs)) // the marginals: the weights divided by their sum
	for k, b := range beliefs {
		sum := 0.0
		for _, w := range b.Weights {
			sum += w
		}
		believed[k] = make([]float64, len(b.Weights))
		f.belief.Variables = append(f.belief.Variables, b.Var)
		f.belief.Likelihoods[k] = make([]float64, len(b.Weights))
		for x, w := range b.Weights {
			believed[k][x], f.belief.Likelihoods[k][x] = w/sum, 1
		}
	}

	// Each round scales all of p once for each belief.
	// So that at most maxScaled probabilities are scaled in all.
	missed, roundLimit := math.Inf(1), min(maxRounds, maxScaled/(len(p)*len(beliefs)))
	for missed > fittedTo && f.belief.Rounds < roundLimit {
		f.belief.Rounds++
		if why := f.fitRound(beliefs, believed); why != "" {
			return f, why
		}
		missed = f.largestMiss(beliefs, believed)
	}
	f.belief.Missed = missed
	if missed > mostMissed {
		return f, fmt.Sprintf("the beliefs contradict each other: after %d rounds of fitting one is missed by %.2g", f.belief.Rounds, missed)
	}

	for _, weights := range f.belief.Likelihoods {
		largest := 0.0
		for _, w := range weights {
			largest = max(largest, w)
		}
		for x := range weights {
			weights[x] /= largest
		}
	}
	return f, ""
}

// fitRound does one round of proportional fitting: for each variable in turn it scales the distribution f.shares so that the marginal of
// this variable is the believed one. A value x needs the factor believed/current, by which its likelihood in the answer is multiplied too.
// If a value is impossible and believed with a probability above 0, it stops, and why is that in words; otherwise why is "".
func (f *fitted) fitRound(beliefs []factorgraph.Likelihood, believed [][]float64) (why string) {
	for k := range beliefs {
		current := marginal(f.shares, beliefs, k)
		for x, w := range believed[k] {
			switch {
			case w == 0:
				f.belief.Likelihoods[k][x] = 0
			case current[x] == 0:
				return fmt.Sprintf(
					"variable %d = %d is believed with probability %.6g, and is impossible beside the rest", beliefs[k].Var, x, w,
				)
			default:
				f.belief.Likelihoods[k][x] *= w / current[x]
			}
		}
		scaleMarginal(f.shares, beliefs, k, believed[k], current)
	}
	return ""
}

// largestMiss returns the largest difference between a marginal probability of the distribution and the believed one.
func (f *fitted) largestMiss(beliefs []factorgraph.Likelihood, believed [][]float64) (missed float64) {
	for k := range beliefs {
		for x, p := range marginal(f.shares, beliefs, k) {
			missed = max(missed, math.Abs(p-believed[k][x]))
		}
	}
	return missed
}

// marginal returns the probability of each value of believed variable k. p has the probabilities of all combinations of values of the
// believed variables, in the sequence of combinations.
func marginal(p []float64, beliefs []factorgraph.Likelihood, k int) []float64 {
	sums := make([]float64, len(beliefs[k].Weights))
	b := 0
	for values := range combinations(beliefs) {
		sums[values[k]] += p[b]
		b++
	}
	return sums
}

// scaleMarginal changes the marginal of believed variable k, under the distribution p, from current to believed: it multiplies the
// probability p[b] of each combination b of values of the believed variables by believed[x]/current[x], where x is the value of variable k
// in b.
func scaleMarginal(p []float64, beliefs []factorgraph.Likelihood, k int, believed, current []float64) {
	b := 0
	for values := range combinations(beliefs) {
		if x := values[k]; believed[x] == 0 {
			p[b] = 0
		} else {
			p[b] *= believed[x] / current[x]
		}
		b++
	}
}

// mix writes the marginals and the joint marginal under the beliefs into the result. The query has a further demand b for each combination
// of values of the believed variables, with the total a.kindTotals[b]. The result is the mean of the marginals of these totals, weighted by
// shares[b], the probability of b under the beliefs. If the totals have no marginals, or no joint marginal, nothing is written for them.
func (a *answer) mix(shares []float64) {
	var marginals [][]float64
	var cells []float64
	for b, share := range shares {
		if share == 0 {
			continue
		}
		t := &a.kindTotals[b]
		if marginals == nil && t.Marginals != nil {
			marginals = make([][]float64, len(t.Marginals))
			for i := range marginals {
				marginals[i] = make([]float64, len(t.Marginals[i]))
			}
		}
		for i := range marginals {
			for x, p := range t.Marginals[i] {
				marginals[i][x] += share * p
			}
		}
		if cells == nil && t.Joint != nil {
			cells = make([]float64, len(t.Joint)) // the result has this list, which is filled in below
			a.result.Joint = &query.Joint{Variables: t.Want.Joint, Shape: t.Shape, P: cells}
		}
		for i := range cells {
			cells[i] += share * t.Joint[i]
		}
	}
	a.result.Marginals = posteriorsOf(marginals, a.asked.Query.Targets)
}

// answerUnderBeliefs writes the conditional probability P(event) under beliefs into the result of event, or a warning with the reason why
// there is none. over is the query whose evidence is the condition. An estimate above 1 by no more than rounding becomes 1.
func answerUnderBeliefs(event, over *answer) {
	p, isExact, why := believedProbability(event, over)
	if why == "" && p > 1 {
		if excess := p - 1; excess > additive.ProbabilityRounding {
			why = fmt.Sprintf("the estimates give the event a probability of %.6g", p)
		}
		p = 1
	}
	if why != "" {
		event.warn("no ratio: " + why)
		return
	}
	event.result.Ratio = &query.Ratio{P: &p, Ln: finite(math.Log(p))}
	if !isExact {
		event.result.Exact = false
		event.warn("the probability of the event is an estimate of unknown quality: under the beliefs not everything was computed exactly")
	}
}

// believedProbability returns p = Σ_b r(b) Z_b(event and evidence) / Z_b(evidence), and whether every term of it is exact. b are the
// combinations of values of the believed variables, r is their distribution under the beliefs (f.shares of believe), and Z_b is Z with
// combination b observed. event is the query whose observations are the event and the evidence, and over is the query whose observations
// are the evidence alone. If there is no such probability, why is the reason in words; otherwise it is "".
func believedProbability(event, over *answer) (p float64, isExact bool, why string) {
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
	eventTotals, totals := event.furtherTotalsOf("belief"), over.furtherTotalsOf("belief") // by combination b
	if len(eventTotals) != len(totals) {
		return 0, false, "a query with the believed variables observed is missing"
	}
	isExact = f.belief.Exact
	for b, share := range f.shares {
		if share == 0 {
			continue
		}
		if r := &eventTotals[b].Result; r.Status != query.StatusOK {
			return 0, false, r.Error.Message
		}
		isExact = isExact && eventTotals[b].Result.Exact
		p += share * eventTotals[b].Z.Div(totals[b].Z).Float64()
	}
	if !(p >= 0) {
		return 0, false, fmt.Sprintf("the estimates give the event a probability of %.6g", p)
	}
	return p, isExact, ""
}
