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
	{"curie-weiss", (*Planted).plantEqual, Latent.pairModel},
	{"mattis", (*Planted).plantSigned, Latent.pairModel},
	{"rank", (*Planted).plantRanked, Latent.pairModel},
	{"potts", (*Planted).plantPotts, Latent.pairModel},
	{"hopfield", (*Planted).plantPatterns, Latent.pairModel},
	{"blocks", (*Planted).plantBlocks, Latent.pairModel},
	{"chain", (*Planted).plantPatterns, Latent.pairModel},
	{"grid", (*Planted).plantPatterns, Latent.pairModel},
	{"three-body", (*Planted).plantTriples, Latent.tripleModel},
	{"smokers", (*Planted).plantSmokers, Latent.smokerModel},
	{"symmetric", (*Planted).plantSets, Latent.setModel},
	{"mixture", (*Planted).plantSets, Latent.setModel},
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
	// Check the options. Without a number of values (0) the family has its own.
	n := o.Variables
	hasValues := o.Values == 0 || o.Values >= 2 && o.Values <= latentValues
	if n < 2 || n > latentSpins || o.Rank < 0 || o.Rank > latentRank || !hasValues {
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

	// Plant the structure of the family.
	p, r := &Planted{Domain: 2}, newStream(o.Seed, "latent "+o.Family)
	if err := latentFamilies[k].plant(p, o, r); err != nil {
		return nil, err
	}
	if p.Friends != nil {
		n *= 2 // smokes and cancer of every person
	}

	// Draw a field for each value of each variable. A spin has opposite ones.
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

// newStream returns a source of random numbers that follow from the seed, others for each purpose.
func newStream(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// drawNoise draws Noise/scale · N(0, 1), which is added to a logarithm. It is 0, and draws nothing, without noise.
func (o Latent) drawNoise(r *rand.Rand, scale float64) float64 {
	if o.Noise == 0 {
		return 0
	}
	return o.Noise / scale * r.NormFloat64()
}

// pairModel returns a model with a table for every pair of variables. ln of the table of i and j is Σ_k λ_k v_k(i, x) v_k(j, y), plus a
// coupling of the two that is that of the pair in p.Sparse (0 if it is not there) and noise.
func (o Latent) pairModel(p *Planted) (*factorgraph.Model, error) {
	n, d := o.Variables, p.Domain
	pairs := n * (n - 1) / 2
	b := newBuilder(slices.Repeat([]int{d}, n), n+pairs, n*d+pairs*d*d, n+2*pairs) // factors, entries, variables in scopes
	if o.Field != 0 {
		for i := range n {
			h := b.addTable(i)
			for x := range h {
				h[x] = math.Exp(p.Field[i*d+x])
			}
		}
	}

	sparse := map[[2]int]float64{} // couplings, by pair
	for _, c := range p.Sparse {
		sparse[[2]int{c.I, c.J}] = c.Coupling
	}
	r := newStream(o.Seed, "noise of "+o.Family)
	for i := range n {
		for j := i + 1; j < n; j++ {
			coupling := sparse[[2]int{i, j}] + o.drawNoise(r, math.Sqrt(float64(n)))
			o.fillPair(b.addTable(i, j), p, i, j, coupling)
		}
	}
	return b.model(), nil
}

// fillPair fills in the table of the variables i and j. Potts variables are coupled where their values are the same, spins by the product
// of their values ±1.
func (o Latent) fillPair(table []float64, p *Planted, i, j int, coupling float64) {
	d := p.Domain
	for entry := range table {
		x, y := entry/d, entry%d // values of i and j
		ln := 0.0
		for k, lambda := range p.Lambda {
			ln += lambda * p.Vectors[k][i*d+x] * p.Vectors[k][j*d+y]
		}
		switch {
		case o.Family == "potts" && x == y:
			ln += coupling
		case o.Family != "potts": // values 0 and 1 are the spins −1 and 1
			ln += coupling * float64((2*x-1)*(2*y-1))
		}
		table[entry] = math.Exp(ln)
	}
}

// tripleModel returns a model with a table for every three spins.
func (o Latent) tripleModel(p *Planted) (*factorgraph.Model, error) {
	n := o.Variables
	triples := n * (n - 1) * (n - 2) / 6
	b := newBuilder(slices.Repeat([]int{2}, n), n+triples, 2*n+8*triples, n+3*triples) // factors, entries, variables in scopes
	for i := range n {
		b.addField(i, p.Field[2*i+1]) // Field has −h and h of spin i at 2i and 2i + 1
	}
	r := newStream(o.Seed, "noise of "+o.Family)
	groups := len(p.Vectors) // spin i is in group i % groups, and v(i, x) is its number there; a coupling depends on the three groups
	v := func(i, x int) float64 { return p.Vectors[i%groups][2*i+x] }
	for i := range n {
		for j := i + 1; j < n; j++ {
			for k := j + 1; k < n; k++ {
				g := []int{i % groups, j % groups, k % groups}
				slices.Sort(g)
				coupling := p.Triples[(g[0]*groups+g[1])*groups+g[2]] + o.drawNoise(r, float64(n))
				table := b.addTable(i, j, k)
				for entry := range table {
					x, y, z := entry>>2, entry>>1&1, entry&1 // values of i, j and k
					table[entry] = math.Exp(coupling * v(i, x) * v(j, y) * v(k, z))
				}
			}
		}
	}
	return b.model(), nil
}

// setModel returns a model with a table for each set of spins: exp of a number that depends on how many spins are up (p.Counts), or a sum
// of terms, one for each statistic k: Σ_k exp(λ_k Σ_i v_k(i, x_i)) over the spins i of the set. Each entry has its own noise.
func (o Latent) setModel(p *Planted) (*factorgraph.Model, error) {
	n, r := o.Variables, newStream(o.Seed, "noise of "+o.Family)
	b := newSpins(n)
	for i := range n {
		b.addField(i, p.Field[2*i+1]) // Field has −h and h of spin i at 2i and 2i + 1
	}
	for _, set := range p.Groups {
		table := b.addTable(set...)
		for entry := range table { // its bits are the values of the set's spins, the last spin lowest
			noise := o.drawNoise(r, math.Sqrt(float64(n)))
			if p.Counts != nil {
				up := bits.OnesCount(uint(entry))
				table[entry] = math.Exp(p.Counts[up] + noise)
			}
			for k, v := range p.Vectors {
				ln := noise
				for position, i := range set {
					x := entry >> (len(set) - 1 - position) & 1
					ln += p.Lambda[k] * v[2*i+x]
				}
				table[entry] += math.Exp(ln)
			}
		}
	}
	return b.model(), nil
}

// smokerModel returns a model of persons, each with two variables, and of a hidden friendship for every two persons.
func (o Latent) smokerModel(p *Planted) (*factorgraph.Model, error) {
	n := o.Variables
	pairs := n * (n - 1) / 2
	// Room for factors, entries, and variables in scopes. A person has two fields and a coupling; a pair has the friendship's own weight,
	// with 2 entries, and the rule over three variables, with 8.
	b := newBuilder(slices.Repeat([]int{2}, 2*n+pairs), 3*n+2*pairs, 8*n+10*pairs, 4*n+4*pairs)

	// persons: smokes of person i is variable 2i, and cancer is 2i + 1
	for i := range 2 * n {
		b.addField(i, p.Field[2*i+1]) // Field has −h and h of variable i at 2i and 2i + 1
	}
	for _, c := range p.Sparse {
		b.addCoupling(c.I, c.J, c.Coupling)
	}

	// friendships
	r := newStream(o.Seed, "noise of "+o.Family)
	friends := 2 * n // the variable of the next pair
	for i := range n {
		for j := i + 1; j < n; j++ {
			rule := p.Friends.Rule
			if o.Noise != 0 {
				rule = ruleWeight(p.Lambda[0] + o.drawNoise(r, math.Sqrt(float64(n))))
			}
			if !(rule > 0 && rule <= math.MaxFloat64) {
				return nil, fmt.Errorf("%w: no weight of the rule couples %d persons by %v", ErrOptions, n, o.Coupling)
			}
			b.addFactor([]int{friends}, 1, friendOdds)
			b.addFactor([]int{2 * i, 2 * j, friends}, 1, 1, 1, rule, 1, rule, 1, 1) // rule: they are friends, and only one smokes
			friends++
		}
	}
	return b.model(), nil
}

// ruleWeight returns the weight of the broken rule for which two persons have this coupling when their friendship is
// summed out.
func ruleWeight(coupling float64) float64 {
	return ((1+friendOdds)*math.Exp(-2*coupling) - 1) / friendOdds
}

// addStatistic appends a statistic of n spins with λ = coupling/n: it couples every two spins i and j by λ times the product of its values
// for them. v(i) is its value if spin i is 1; if the spin is −1, it is −v(i).
func (p *Planted) addStatistic(n int, coupling float64, v func(i int) float64) {
	vector := make([]float64, 2*n)
	for i := range n {
		x := v(i)
		vector[2*i], vector[2*i+1] = -x, x
	}
	p.Lambda = append(p.Lambda, coupling/float64(n))
	p.Vectors = append(p.Vectors, vector)
}

// drawSign draws −1 or 1.
func drawSign(r *rand.Rand) float64 { return float64(1 - 2*r.IntN(2)) }

// plantEqual plants one statistic, with v = 1 for every spin.
func (p *Planted) plantEqual(o Latent, _ *rand.Rand) error {
	p.addStatistic(o.Variables, o.Coupling, func(int) float64 { return 1 })
	return nil
}

// plantSigned plants one statistic, with a random sign v = ±1 for every spin.
func (p *Planted) plantSigned(o Latent, r *rand.Rand) error {
	p.addStatistic(o.Variables, o.Coupling, func(int) float64 { return drawSign(r) })
	return nil
}

// plantRanked plants o.Rank statistics with v from ±1 and ±2, each λ of either sign and smaller by the mean of v².
func (p *Planted) plantRanked(o Latent, r *rand.Rand) error {
	const square = 2.5 // the mean of v²
	for range max(1, o.Rank) {
		p.addStatistic(o.Variables, o.Coupling/square*drawSign(r), func(int) float64 { return float64(1+r.IntN(2)) * drawSign(r) })
	}
	return nil
}

// plantPotts plants a statistic for each value a, which is 1 for each variable that has it: v_a(i, x) = 1 if x = a,
// else 0. It draws nothing.
func (p *Planted) plantPotts(o Latent, _ *rand.Rand) error {
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

// plantPatterns plants o.Rank statistics of random signs. It adds the pairs of a chain for the family chain, and for
// grid those of a grid whose columns are neighbours in the sequence of variables.
func (p *Planted) plantPatterns(o Latent, r *rand.Rand) error {
	n := o.Variables
	for range max(1, o.Rank) {
		if err := p.plantSigned(o, r); err != nil {
			return err
		}
	}
	rows := min(latentRows, int(math.Sqrt(float64(n)))) // of the grid
	for i := range n - 1 {
		isColumnEnd := (i+1)%rows == 0
		if o.Family == "chain" || o.Family == "grid" && !isColumnEnd {
			p.Sparse = append(p.Sparse, Coupled{i, i + 1, uniform(r, 1)})
		}
		if o.Family == "grid" && i+rows < n {
			p.Sparse = append(p.Sparse, Coupled{i, i + rows, uniform(r, 1)})
		}
	}
	return nil
}

// plantBlocks divides the variables into groups of neighbours with a statistic each, which couples every two of the group, and joins the
// last two of each group to the first two of the next.
func (p *Planted) plantBlocks(o Latent, r *rand.Rand) error {
	n, k := o.Variables, max(2, o.Rank)
	if n < 2*k {
		return fmt.Errorf("%w: %d groups of %d variables", ErrOptions, k, n)
	}
	for g := range k {
		start, end := n*g/k, n*(g+1)/k
		// addStatistic divides by n: λ is the coupling divided by the size of the group
		p.addStatistic(n, o.Coupling*float64(n)/float64(end-start), signsInside(r, func(i int) bool { return i >= start && i < end }))
		for e := 1; e <= 2 && g+1 < k; e++ { // the pairs (end−1, end) and (end−2, end+1)
			p.Sparse = append(p.Sparse, Coupled{end - e, end + e - 1, uniform(r, 1)})
		}
	}
	return nil
}

// signsInside returns a function that draws the sign of a spin inside a group, and is 0 outside. It draws one in either
// case.
func signsInside(r *rand.Rand, isInside func(i int) bool) func(i int) float64 {
	return func(i int) float64 {
		if v := drawSign(r); isInside(i) {
			return v
		}
		return 0
	}
}

// plantTriples divides the variables into groups, spin i into group i modulo their number K, and draws a coupling for every three groups.
// Each group has a statistic, the signs of its spins. With one group, the coupling is 2 Coupling/n², since a spin is in about n²/2 triples;
// with more, couplings are uniform in ±2 K Coupling/n².
func (p *Planted) plantTriples(o Latent, r *rand.Rand) error {
	n, k := o.Variables, max(1, o.Rank)
	if n < 3 || n > latentThrees {
		return fmt.Errorf("%w: %d variables in threes, 3 to %d are possible", ErrOptions, n, latentThrees)
	}
	for g := range k {
		p.addStatistic(n, 0, signsInside(r, func(i int) bool { return i%k == g })) // λ = 0: Triples have the couplings
	}
	if k == 1 {
		p.Triples = []float64{2 * o.Coupling / float64(n) / float64(n)}
		return nil
	}
	for range k * k * k { // at (a·k + b)·k + c for the groups a ≤ b ≤ c; the others are not used
		p.Triples = append(p.Triples, uniform(r, 2*float64(k)*o.Coupling/float64(n)/float64(n)))
	}
	return nil
}

// plantSmokers plants the friendships and one statistic, in which smokes counts and cancer does not, and couples the two variables of each
// person. A friendship that is summed out couples the spins of two smokes by exp(Ln + λ x_i x_j), where λ is the coupling divided by n.
func (p *Planted) plantSmokers(o Latent, r *rand.Rand) error {
	n := o.Variables
	if n > latentPeople {
		return fmt.Errorf("%w: %d persons, 2 to %d are possible", ErrOptions, n, latentPeople)
	}
	lambda := o.Coupling / float64(n)
	// Two persons alike in smoking have the factor 1 + friendOdds, which has to be exp(Ln + λ).
	p.Friends = &Friendship{Odds: friendOdds, Rule: ruleWeight(lambda), Ln: math.Log(1+friendOdds) - lambda}
	p.addStatistic(2*n, 2*o.Coupling, func(i int) float64 { return float64(1 - i%2) }) // divided by 2n: lambda; 1 for a smokes, 0 for a cancer
	for i := 0; i < 2*n; i += 2 {
		p.Sparse = append(p.Sparse, Coupled{i, i + 1, uniform(r, 1)})
	}
	return nil
}

// plantSets plants overlapping sets: latentGroup (14) consecutive variables each, a new one at every latentNext (7) variables. For the
// family symmetric it draws a table by the number of spins up in a set; for mixture it draws statistics, vectors of signs of the spins.
func (p *Planted) plantSets(o Latent, r *rand.Rand) error {
	n := o.Variables
	if n < latentGroup {
		return fmt.Errorf("%w: %d variables in sets of %d", ErrOptions, n, latentGroup)
	}
	for first := 0; first+latentGroup <= n; first += latentNext {
		p.Groups = append(p.Groups, firstNumbers(first + latentGroup)[first:])
	}
	if o.Family == "symmetric" {
		for range latentGroup + 1 {
			p.Counts = append(p.Counts, uniform(r, o.Coupling))
		}
		return nil
	}
	for range max(2, o.Rank) {
		// addStatistic divides by n: λ is a quarter of the coupling
		p.addStatistic(n, o.Coupling*float64(n)/4, func(int) float64 { return drawSign(r) })
	}
	return nil
}
