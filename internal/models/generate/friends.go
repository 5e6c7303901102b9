package generate

// Friends and smokers: the model that lifted inference is shown on, with the friendships summed out.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Friends are n people that smoke or not, have cancer or not, and are friends or not, two by two, under the
// weighted formulas
//
//	Smoking  smokes(x)
//	Cancer   cancer(x)
//	Causes   smokes(x) ⇒ cancer(x)
//	Peers    friends(x, y) ∧ smokes(x) ⇒ smokes(y)        for x ≠ y
//
// where a formula that does not hold costs exp(−weight), and smokes(x), cancer(x) that hold exp(weight).
// Source: M. Richardson and P. Domingos, Markov logic networks (2006).
type Friends struct {
	People int // at least 2
	// ln weights, in nats
	Smoking, Cancer, Causes, Peers float64
	Mean                           float64 // friends that everybody has on average where nobody smokes
}

// DefaultFriends has the weights of the example that goes with the Alchemy system, and five friends each.
func DefaultFriends(people int) Friends {
	return Friends{People: people, Smoking: -1.4, Cancer: -2.3, Causes: 1.5, Peers: 1.1, Mean: 5}
}

// mostPeople bounds the model, and mostWeight the weights.
const (
	mostPeople = 4_000_000
	mostWeight = 100
)

// Model returns the model over 2·People variables, smokes(x) = x and cancer(x) = People + x, value 1 for true.
// A table per person has the formulas of smoking, of cancer, and of smoking as its cause. The n(n−1) friendships are summed out: with odds
// f of each, a pair of a smoker and a non-smoker has the factor 1 + f exp(−Peers), and any other pair has 1 + f. If k people smoke, there
// are k(n−k) pairs of a smoker and a non-smoker. So all pairs together are one symmetric factor over all smokes(x),
//
//	S_k = (1 + f)^{n(n−1) − k(n−k)} · (1 + f exp(−Peers))^{k(n−k)}
//
// Z includes the friendships. Errors: ErrOptions.
func (o Friends) Model() (*factorgraph.Model, error) {
	if o.People < 2 || o.People > mostPeople {
		return nil, fmt.Errorf("%w: %d people, 2 to %d are possible", ErrOptions, o.People, mostPeople)
	}
	for _, w := range []float64{o.Smoking, o.Cancer, o.Causes, o.Peers} {
		if !(math.Abs(w) <= mostWeight) { // or NaN
			return nil, fmt.Errorf("%w: weight %v, at most %v", ErrOptions, w, float64(mostWeight))
		}
	}
	n := float64(o.People)
	if !(o.Mean >= 0 && o.Mean < n-1) {
		return nil, fmt.Errorf("%w: %v friends among %d people", ErrOptions, o.Mean, o.People)
	}

	m := &factorgraph.Model{
		Domains: slices.Repeat([]int{2}, 2*o.People),
		Factors: make([]factorgraph.Factor, o.People+1),
	}

	// a table per person, all with the same entries, and the factor of the friendships
	scopes, shape, data := make([]int, 2*o.People), []int{2, 2}, o.person()
	for x := range o.People {
		scope := scopes[2*x : 2*x+2 : 2*x+2]
		scope[0], scope[1] = x, o.People+x
		m.Factors[x] = factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}}
	}
	m.Factors[o.People] = factorgraph.Factor{Scope: firstNumbers(o.People), Table: o.friendships()}
	return m, nil
}

// person returns the table of smokes(x) and cancer(x), the latter fastest: exp(Smoking·smokes + Cancer·cancer), divided by exp(Causes) for
// smokers without cancer.
func (o Friends) person() []float64 {
	table := make([]float64, 4)
	for smokes := range 2 {
		for cancer := range 2 {
			ln := o.Smoking*float64(smokes) + o.Cancer*float64(cancer)
			if smokes == 1 && cancer == 0 {
				ln -= o.Causes
			}
			table[2*smokes+cancer] = math.Exp(ln)
		}
	}
	return table
}

// friendships returns the factor over all smokes(x) in which the friendships are summed out. For k smokers among n people it is
//
//	S_k = (1 + f)^{n(n−1) − k(n−k)} · (1 + f exp(−Peers))^{k(n−k)}
//
// where f = Mean / (n − 1 − Mean) are the odds of a friendship.
func (o Friends) friendships() *tensor.Symmetric {
	n := float64(o.People)
	odds := o.Mean / (n - 1 - o.Mean)
	lnEqual, lnMixed := math.Log1p(odds), math.Log1p(odds*math.Exp(-o.Peers)) // the factors of a pair
	dims := slices.Repeat([]int{2}, o.People)
	s := scaled.NewVector(o.People + 1)
	for k := range o.People + 1 {
		mixedPairs := float64(k) * (n - float64(k))
		s.Set(k, scaled.FromLog((n*(n-1)-mixedPairs)*lnEqual+mixedPairs*lnMixed))
	}
	return &tensor.Symmetric{Shape: dims, Levels: countspace.TwoLevels(dims), Values: s}
}

// DrawEvidence draws observations of a share of the people: of every other one whether they smoke, which is true with probability 0.3,
// and of the rest whether they have cancer, which is true with probability 0.2. They follow from the seed.
func (o Friends) DrawEvidence(share float64, seed uint64) (factorgraph.Evidence, error) {
	if !(share >= 0 && share <= 1) {
		return factorgraph.Evidence{}, fmt.Errorf("%w: a share of %v", ErrOptions, share)
	}
	const smokers, ill = 0.3, 0.2              // chosen
	rng := rand.New(rand.NewPCG(seed, 0x6673)) // "fs"
	var hard []factorgraph.Observation
	observed := rng.Perm(o.People)[:int(share*float64(o.People))]
	for i, x := range observed {
		v, probability := x, smokers
		if i%2 == 1 {
			v, probability = o.People+x, ill
		}
		value := 0
		if rng.Float64() < probability {
			value = 1
		}
		hard = append(hard, factorgraph.Observation{Var: v, Value: value})
	}
	return factorgraph.NewEvidence(hard, nil)
}
