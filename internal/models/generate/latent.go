package generate

// Plain tables of pairs whose logarithms are of low rank but for few pairs: functions of few linear statistics that no file declares.

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Latent describes a model of n variables with a table for every pair,
//
//	P(x) ∝ exp(Σ_{i<j} Σ_k λ_k v_k(i, x_i) v_k(j, x_j) + Σ_sparse J_ij x_i x_j + Σ_i h_i(x_i)),   J_ij ~ U(−1, 1),
//
// and noise. Spins are ±1, value 0 being −1, with v_k(i, x) = v_ki · x. All v are whole numbers, so that states can be counted.
type Latent struct {
	Family    string // of LatentFamilies
	Variables int    // n, 2 to 3,000
	// Rank is the number of statistics of rank, chain and grid, patterns of hopfield, groups of blocks and three-body, products of mixture;
	// 0: one, or two.
	Rank     int
	Values   int     // of a variable of potts; 0: three
	Coupling float64 // Σ_j |J_ij| of a spin and of a statistic with v = ±1
	Field    float64 // h ~ U(−Field, Field), of every value of potts
	// Noise ε adds ε/√n · N(0, 1) to the coupling of every pair, ε/n · N(0, 1) to that of three, which leaves nothing exact.
	Noise float64
	Seed  uint64
}

// Planted is the structure of a Latent model.
type Planted struct {
	Domain  int
	Lambda  []float64   // λ_k
	Vectors [][]float64 // v_k(i, x) by statistic, at i·Domain + x
	Field   []float64   // h_i(x) at i·Domain + x, nats
	Sparse  []Coupled   // the pairs that deviate
	// Triples are of three-body with a statistic for each group, K in all: every three spins i of groups a ≤ b ≤ c have the factor
	// exp(Triples[(a·K + b)·K + c] · Π v(i, x_i)).
	Triples []float64
	Groups  [][]int     // sets of symmetric and mixture
	Counts  []float64   // of symmetric: ln of a table by the number of spins up, nats
	Friends *Friendship // of every two persons of smokers, whose other variables the fields above are of
}

// Friendship is a hidden variable of two persons, the last ones of the model in lexicographic order: it has the weight Odds at value 1,
// times Rule where one of them smokes. Its sum is exp(Ln + λ x_i x_j).
type Friendship struct{ Odds, Rule, Ln float64 }

// Coupled is a pair of spins, I < J, with the factor exp(Coupling · x_I x_J).
type Coupled struct {
	I, J     int
	Coupling float64
}

const (
	latentSpins  = 3000
	latentRank   = 6
	latentValues = 16
	latentRows   = 10  // of a grid, at most: they are the width of the rest
	latentThrees = 200 // variables of three-body, which has 1.3 million tables then
	latentPeople = 1000
	friendOdds   = 2 // of smokers
	latentGroup  = 14
	latentNext   = 7 // from one group to the next
)

// latentFamilies are the families in the sequence of the help: how their structure is drawn, and the model of it.
//
//	curie-weiss  v = 1
//	mattis       v = ±1: hidden signs
//	rank         v from ±1, ±2, and each λ of either sign
//	potts        equal values attract: v_a(i, x) = 1 where x = a
//	hopfield     v = ±1, a pattern per statistic
//	blocks       groups with one statistic each, neighbours joined by two sparse pairs
//	chain        v = ±1, and a chain of sparse pairs
//	grid         v = ±1, and a grid of sparse pairs with up to ten rows
//	three-body   v = ±1: tables of every three spins, exp(J Π v_i x_i) with J = 2 Coupling/n², and none of two; with groups, whose
//	             spins take turns, J = 2 u K Coupling/n² with u ~ U(−1, 1) for all that have as many spins of each
//	smokers      n persons, each with variables smokes, then cancer, and a sparse pair of them; friends, a hidden variable for every
//	             two persons, in a table of three: friends(i, j) and smokes(i) imply smokes(j), either way, with a weight such that
//	             persons are coupled as in curie-weiss where friends are summed out
//	symmetric    sets of 14 neighbours, each seven further than the one before, with a table of their number of spins up, ln of its entries
//	             U(−Coupling, Coupling)
//	mixture      the same sets, with tables Σ_k exp(λ Σ_i v_k(i, x_i)), v = ±1, λ = Coupling/4
var latentFamilies = []struct {
	name  string
	plant func(p *Planted, o Latent, r *rand.Rand) error
	model func(o Latent, p *Planted) (*factorgraph.Model, error)
}{
	{"curie-weiss", (*Planted).equal, Latent.pairs},
	{"mattis", (*Planted).signed, Latent.pairs},
	{"rank", (*Planted).ranked, Latent.pairs},
	{"potts", (*Planted).potts, Latent.pairs},
	{"hopfield", (*Planted).patterns, Latent.pairs},
	{"blocks", (*Planted).blocks, Latent.pairs},
	{"chain", (*Planted).patterns, Latent.pairs},
	{"grid", (*Planted).patterns, Latent.pairs},
	{"three-body", (*Planted).threes, Latent.threes},
	{"smokers", (*Planted).smokers, Latent.smokers},
	{"symmetric", (*Planted).sets, Latent.sets},
	{"mixture", (*Planted).sets, Latent.sets},
}

// LatentFamilies lists the names of the families.
func LatentFamilies() (names []string) {
	for _, f := range latentFamilies {
		names = append(names, f.name)
	}
	return names
}

// Model returns the model: fields, then every pair in lexicographic order. Errors: ErrOptions.
func (o Latent) Model() (*factorgraph.Model, error) {
	p, err := o.Planted()
	if err != nil {
		return nil, err
	}
	k := slices.Index(LatentFamilies(), o.Family)
	return latentFamilies[k].model(o, p)
}

// Planted returns the structure of the model, without noise. Errors: ErrOptions.
func (o Latent) Planted() (*Planted, error) {
	n := o.Variables
	if n < 2 || n > latentSpins || o.Rank < 0 || o.Rank > latentRank || o.Values != 0 && (o.Values < 2 || o.Values > latentValues) {
		return nil, fmt.Errorf("%w: %d variables of rank %d, %d values; 2 to %d, 1 to %d and 2 to %d are possible",
			ErrOptions, n, o.Rank, o.Values, latentSpins, latentRank, latentValues)
	}
	for _, x := range []float64{o.Coupling, o.Field, o.Noise} {
		if !(math.Abs(x) <= maxCoupling) {
			return nil, fmt.Errorf("%w: a coupling, field or noise of %v, at most %d is possible", ErrOptions, x, maxCoupling)
		}
	}
	k := slices.Index(LatentFamilies(), o.Family)
	if k < 0 {
		return nil, fmt.Errorf("%w: no family %q, there are %s", ErrOptions, o.Family, strings.Join(LatentFamilies(), ", "))
	}
	p, r := &Planted{Domain: 2}, stream(o.Seed, "latent "+o.Family)
	if err := latentFamilies[k].plant(p, o, r); err != nil {
		return nil, err
	}
	if p.Friends != nil {
		n *= 2 // smokes and cancer of every person
	}
	for range n {
		if p.Domain == 2 {
			h := uniform(r, o.Field)
			p.Field = append(p.Field, -h, h)
			continue
		}
		for range p.Domain {
			p.Field = append(p.Field, uniform(r, o.Field))
		}
	}
	return p, nil
}

// stream is the random numbers of a seed, different for every purpose.
func stream(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// noise draws what o.Noise adds to a logarithm: N(0, 1) times ε over so much; 0 without noise.
func (o Latent) noise(r *rand.Rand, over float64) float64 {
	if o.Noise == 0 {
		return 0
	}
	return o.Noise / over * r.NormFloat64()
}

// pairs returns a model of a table for every pair.
func (o Latent) pairs(p *Planted) (*factorgraph.Model, error) {
	n, d := o.Variables, p.Domain
	count := n * (n - 1) / 2
	b := room(slices.Repeat([]int{d}, n), n+count, n*d+count*d*d, n+2*count)
	if o.Field != 0 {
		for i := range n {
			h := b.table(i)
			for x := range h {
				h[x] = math.Exp(p.Field[i*d+x])
			}
		}
	}
	sparse := map[[2]int]float64{}
	for _, c := range p.Sparse {
		sparse[[2]int{c.I, c.J}] = c.Coupling
	}
	r := stream(o.Seed, "noise of "+o.Family)
	for i := range n {
		for j := i + 1; j < n; j++ {
			extra := sparse[[2]int{i, j}] + o.noise(r, math.Sqrt(float64(n)))
			table := b.table(i, j)
			for entry := range table {
				x, y := entry/d, entry%d
				ln := 0.0
				for k, lambda := range p.Lambda {
					ln += lambda * p.Vectors[k][i*d+x] * p.Vectors[k][j*d+y]
				}
				switch {
				case o.Family == "potts" && x == y:
					ln += extra
				case o.Family != "potts":
					ln += extra * float64((2*x-1)*(2*y-1))
				}
				table[entry] = math.Exp(ln)
			}
		}
	}
	return b.model(), nil
}

// threes returns a model of tables of every three spins.
func (o Latent) threes(p *Planted) (*factorgraph.Model, error) {
	n := o.Variables
	count := n * (n - 1) * (n - 2) / 6
	b := room(slices.Repeat([]int{2}, n), n+count, 2*n+8*count, n+3*count)
	for i := range n {
		b.field(i, p.Field[2*i+1])
	}
	r := stream(o.Seed, "noise of "+o.Family)
	groups := len(p.Vectors)
	v := func(i, x int) float64 { return p.Vectors[i%groups][2*i+x] }
	for i := range n {
		for j := i + 1; j < n; j++ {
			for k := j + 1; k < n; k++ {
				g := []int{i % groups, j % groups, k % groups}
				slices.Sort(g)
				coupling := p.Triples[(g[0]*groups+g[1])*groups+g[2]] + o.noise(r, float64(n))
				table := b.table(i, j, k)
				for entry := range table {
					table[entry] = math.Exp(coupling * v(i, entry>>2) * v(j, entry>>1&1) * v(k, entry&1))
				}
			}
		}
	}
	return b.model(), nil
}

// sets returns a model of tables of many spins.
func (o Latent) sets(p *Planted) (*factorgraph.Model, error) {
	n, r := o.Variables, stream(o.Seed, "noise of "+o.Family)
	b := spins(n)
	for i := range n {
		b.field(i, p.Field[2*i+1])
	}
	for _, set := range p.Groups {
		table := b.table(set...)
		for entry := range table {
			noise := o.noise(r, math.Sqrt(float64(n)))
			if p.Counts != nil {
				table[entry] = math.Exp(p.Counts[bits.OnesCount(uint(entry))] + noise)
			}
			for k, v := range p.Vectors {
				ln := noise
				for place, i := range set {
					ln += p.Lambda[k] * v[2*i+entry>>(len(set)-1-place)&1]
				}
				table[entry] += math.Exp(ln)
			}
		}
	}
	return b.model(), nil
}

// smokers returns a model of persons and friendships.
func (o Latent) smokers(p *Planted) (*factorgraph.Model, error) {
	n := o.Variables
	pairs := n * (n - 1) / 2
	b := room(slices.Repeat([]int{2}, 2*n+pairs), 3*n+2*pairs, 8*n+10*pairs, 4*n+4*pairs)
	for i := range 2 * n {
		b.field(i, p.Field[2*i+1])
	}
	for _, c := range p.Sparse {
		b.couple(c.I, c.J, c.Coupling)
	}
	r := stream(o.Seed, "noise of "+o.Family)
	friends := 2 * n
	for i := range n {
		for j := i + 1; j < n; j++ {
			rule := p.Friends.Rule
			if o.Noise != 0 {
				rule = ruleWeight(p.Lambda[0] + o.noise(r, math.Sqrt(float64(n))))
			}
			if !(rule > 0 && rule <= math.MaxFloat64) {
				return nil, fmt.Errorf("%w: no weight of the rule couples %d persons by %v", ErrOptions, n, o.Coupling)
			}
			b.add([]int{friends}, 1, friendOdds)
			b.add([]int{2 * i, 2 * j, friends}, 1, 1, 1, rule, 1, rule, 1, 1)
			friends++
		}
	}
	return b.model(), nil
}

// ruleWeight is the weight of a broken rule that couples two persons by a number when their friendship is summed out.
func ruleWeight(coupling float64) float64 {
	return ((1+friendOdds)*math.Exp(-2*coupling) - 1) / friendOdds
}

// statistic appends a statistic of spins with λ = coupling/n.
func (p *Planted) statistic(n int, coupling float64, v func(i int) float64) {
	vector := make([]float64, 2*n)
	for i := range n {
		x := v(i)
		vector[2*i], vector[2*i+1] = -x, x
	}
	p.Lambda = append(p.Lambda, coupling/float64(n))
	p.Vectors = append(p.Vectors, vector)
}

// sign draws −1 or 1.
func sign(r *rand.Rand) float64 { return float64(1 - 2*r.IntN(2)) }

func (p *Planted) equal(o Latent, _ *rand.Rand) error {
	p.statistic(o.Variables, o.Coupling, func(int) float64 { return 1 })
	return nil
}

func (p *Planted) signed(o Latent, r *rand.Rand) error {
	p.statistic(o.Variables, o.Coupling, func(int) float64 { return sign(r) })
	return nil
}

func (p *Planted) ranked(o Latent, r *rand.Rand) error {
	const square = 2.5 // the mean of v²
	for range max(1, o.Rank) {
		p.statistic(o.Variables, o.Coupling/square*sign(r), func(int) float64 { return float64(1+r.IntN(2)) * sign(r) })
	}
	return nil
}

// potts has a statistic per value: how often it occurs.
func (p *Planted) potts(o Latent, _ *rand.Rand) error {
	n := o.Variables
	p.Domain = cmp.Or(o.Values, 3)
	for a := range p.Domain {
		vector := make([]float64, p.Domain*n)
		for i := range n {
			vector[i*p.Domain+a] = 1
		}
		p.Lambda = append(p.Lambda, o.Coupling/float64(n))
		p.Vectors = append(p.Vectors, vector)
	}
	return nil
}

// patterns are statistics of signs, with the pairs of a chain, or of a grid whose columns are neighbours in the sequence of variables.
func (p *Planted) patterns(o Latent, r *rand.Rand) error {
	n := o.Variables
	for range max(1, o.Rank) {
		if err := p.signed(o, r); err != nil {
			return err
		}
	}
	rows := min(latentRows, int(math.Sqrt(float64(n))))
	for i := range n - 1 {
		if o.Family == "chain" || o.Family == "grid" && (i+1)%rows != 0 {
			p.Sparse = append(p.Sparse, Coupled{i, i + 1, uniform(r, 1)})
		}
		if o.Family == "grid" && i+rows < n {
			p.Sparse = append(p.Sparse, Coupled{i, i + rows, uniform(r, 1)})
		}
	}
	return nil
}

// blocks divides the variables into groups of neighbours, and joins the two last of each to the two first of the next.
func (p *Planted) blocks(o Latent, r *rand.Rand) error {
	n, k := o.Variables, max(2, o.Rank)
	if n < 2*k {
		return fmt.Errorf("%w: %d groups of %d variables", ErrOptions, k, n)
	}
	for g := range k {
		from, to := n*g/k, n*(g+1)/k
		p.statistic(n, o.Coupling*float64(n)/float64(to-from), only(r, func(i int) bool { return i >= from && i < to }))
		for e := 1; e <= 2 && g+1 < k; e++ {
			p.Sparse = append(p.Sparse, Coupled{to - e, to + e - 1, uniform(r, 1)})
		}
	}
	return nil
}

// only draws the signs of spins inside a group, 0 outside of it.
func only(r *rand.Rand, inside func(i int) bool) func(i int) float64 {
	return func(i int) float64 {
		if v := sign(r); inside(i) {
			return v
		}
		return 0
	}
}

// threes divides the variables into groups whose spins take turns.
func (p *Planted) threes(o Latent, r *rand.Rand) error {
	n, k := o.Variables, max(1, o.Rank)
	if n < 3 || n > latentThrees {
		return fmt.Errorf("%w: %d variables in threes, 3 to %d are possible", ErrOptions, n, latentThrees)
	}
	for g := range k {
		p.statistic(n, 0, only(r, func(i int) bool { return i%k == g }))
	}
	if k == 1 {
		p.Triples = []float64{2 * o.Coupling / float64(n) / float64(n)}
		return nil
	}
	for range k * k * k {
		p.Triples = append(p.Triples, uniform(r, 2*float64(k)*o.Coupling/float64(n)/float64(n)))
	}
	return nil
}

func (p *Planted) smokers(o Latent, r *rand.Rand) error {
	n := o.Variables
	if n > latentPeople {
		return fmt.Errorf("%w: %d persons, 2 to %d are possible", ErrOptions, n, latentPeople)
	}
	j := o.Coupling / float64(n)
	p.Friends = &Friendship{Odds: friendOdds, Rule: ruleWeight(j), Ln: math.Log(1+friendOdds) - j}
	p.statistic(2*n, 2*o.Coupling, func(i int) float64 { return float64(1 - i%2) })
	for i := 0; i < 2*n; i += 2 {
		p.Sparse = append(p.Sparse, Coupled{i, i + 1, uniform(r, 1)})
	}
	return nil
}

// sets are of neighbours, for symmetric with a table of their count, for mixture with products.
func (p *Planted) sets(o Latent, r *rand.Rand) error {
	n := o.Variables
	if n < latentGroup {
		return fmt.Errorf("%w: %d variables in sets of %d", ErrOptions, n, latentGroup)
	}
	for first := 0; first+latentGroup <= n; first += latentNext {
		p.Groups = append(p.Groups, upTo(first + latentGroup)[first:])
	}
	if o.Family == "symmetric" {
		for range latentGroup + 1 {
			p.Counts = append(p.Counts, uniform(r, o.Coupling))
		}
		return nil
	}
	for range max(2, o.Rank) {
		p.statistic(n, o.Coupling*float64(n)/4, func(int) float64 { return sign(r) })
	}
	return nil
}
