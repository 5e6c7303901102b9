// Package modes finds the modes of a product of tables: local maxima under changes of one index, far from each other.
//
// A search is coordinate ascent from random states: every index in turn takes its most probable value given all others
// (iterated conditional modes; Besag, On the statistical analysis of dirty pictures, 1986). Every second ascent visits
// the indices by their number of tables, fewest first, so that an index of many tables moves after its neighbours have
// adapted to its value. The index of most tables starts at each of its values in turn. The neighbourhood of a mode is
// described by the conditional distribution of every index given all others at the mode.
package modes

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Mode is a local maximum of ψ, the product of all tables.
type Mode struct {
	State []int // by index: its value
	// Ln is ln ψ(State) in nats, the scale included.
	Ln float64
	// Conditionals[i] is the conditional distribution of index i given all others at the mode.
	Conditionals [][]float64
	// LnAround is ln of the total weight, in nats, of the states that differ from State only in some indices of a set, no two of which
	// share a table. It bounds ln Z from below.
	LnAround float64
}

// Parameters of a search. Chosen.
const (
	MaxModes        = 24    // modes that Find returns, at most
	alwaysKept      = 4     // modes that Find returns whatever their mass
	massRange       = 5     // the masses of all others are at least e^-massRange of the largest
	tries           = 16    // ascents from random states
	sweeps          = 30    // over all indices per ascent, at most
	usualSweeps     = 6     // sweeps per ascent in Work
	distancePart    = 8     // two modes differ in at least 1/distancePart of the indices
	firmProbability = 0.9   // conditional probability from which the value of an index is firm at a mode
	firmPart        = 16    // at least 1/firmPart of the indices of a mode are firm
	gibbsSweeps     = 8     // sweeps of Gibbs sampling that start at a mode
	stayShare       = 0.75  // share of the firm indices that have the value of the mode after these sweeps
	hardness        = 12    // an entry of 0 counts as e^-hardness times the least positive entry of its table in an ascent
	lookWork        = 12    // flops per entry of a table
	slack           = 1e-13 // rounding of LnAround, per table and per nat
)

// newRand returns the random numbers of a search, always the same ones.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(0x6d6f646573, 0)) }

// Work is the price of a search in flops: of the sweeps in all ascents and, at the modes that are always kept, of the Gibbs sweeps. A sweep
// over all indices reads, for each value of each index, an entry of each of its tables; its other work counts as one entry for each index
// and one for each pair of a table and an index of it.
func Work(e *sumproduct.Expression) float64 {
	entriesRead := 0.0 // of one sweep
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			entriesRead += float64(e.Dims[i] + 1)
		}
	}
	return lookWork * (tries*usualSweeps + gibbsSweeps*alwaysKept) * (entriesRead + float64(len(e.Dims)))
}

// Find returns up to MaxModes modes of an expression with entries of at least 0, the largest mass first. It finds them by ascents that
// begin at random states, at grown ones (Phases) and at the given starts. It leaves out maxima of weight 0, those near a mode of larger
// mass, those that are not stable, and small ones if there are many. So the list may be empty. The same input gives the same modes. Errors:
// unsupported for an entry below 0 and where e does not fit; the context's, checked before every ascent. Cost: Work.
func Find(ctx context.Context, e *sumproduct.Expression, starts ...[]int) ([]Mode, error) {
	r := newRand()
	grown, err := grownStates(ctx, e)
	if err != nil {
		return nil, err
	}
	c, maxima, err := ascend(ctx, e, r, append(slices.Clip(starts), grown...))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(maxima, func(a, b Mode) int { return cmp.Compare(b.mass(), a.mass()) })
	var modes []Mode
	for _, m := range maxima {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		isFull := len(modes) == MaxModes
		isTooSmall := len(modes) >= alwaysKept && m.mass() < modes[0].mass()-massRange // masses are logarithms
		if isFull || isTooSmall {
			break // and so are all further ones
		}
		isNearLarger := slices.ContainsFunc(modes, func(larger Mode) bool { return areNear(larger.State, m.State) })
		if !isNearLarger && c.isStable(&m, r) {
			modes = append(modes, m)
		}
	}
	return modes, nil
}

// LowerBound returns a lower bound on ln Z in nats: the largest LnAround of the maxima. If all maxima have weight 0, a repaired state takes
// their place. It returns −Inf if none can be repaired. Errors and cost: as Find.
func LowerBound(ctx context.Context, e *sumproduct.Expression) (float64, error) {
	below := math.Inf(-1)
	grown, err := grownStates(ctx, e)
	if err != nil {
		return below, err
	}
	r := newRand()
	c, maxima, err := ascend(ctx, e, r, grown)
	if err != nil {
		return below, err
	}
	if len(maxima) == 0 {
		m, ok, err := c.repairedMode(ctx, r)
		if !ok {
			return below, err
		}
		maxima = append(maxima, m)
	}
	for _, m := range maxima {
		below = max(below, m.LnAround)
	}
	return below, nil
}

// repairedMode repairs the state and climbs from there. If that fails, it tries random states, half as many as there are tries of a search.
// ok is false if all fail, or if the context ends; then err is its error.
func (c *climber) repairedMode(ctx context.Context, r *rand.Rand) (m Mode, ok bool, err error) {
	for k := range tries / 2 {
		if err := ctx.Err(); err != nil {
			return Mode{}, false, err
		}
		if !c.repair(r) {
			c.setRandom(r, k)
			continue
		}
		repaired := slices.Clone(c.state)
		c.climb(c.randomOrder(r))
		if c.isForbidden() { // an ascent may enter an entry of 0 if other tables gain more
			copy(c.state, repaired)
			c.locate()
		}
		return c.mode(), true, nil
	}
	return Mode{}, false, nil
}

// ascend returns the maxima of positive weight, each once, that ascents from the given starts and from random states find. Every second
// ascent visits the indices by their number of tables, fewest first, the others in random order. c is at the end of the last ascent.
func ascend(ctx context.Context, e *sumproduct.Expression, r *rand.Rand, starts [][]int) (c *climber, maxima []Mode, err error) {
	if e.Signed() {
		return nil, nil, fault.New(fault.Unsupported, "modes: an entry is below 0")
	}
	if err := e.CheckFit(); err != nil {
		return nil, nil, err
	}
	c = newClimber(e)
	for k := range tries + len(starts) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if k < len(starts) { // first the given starts, then random states
			copy(c.state, starts[k])
		} else {
			c.setRandom(r, k-len(starts))
		}
		order := c.randomOrder(r)
		if k%2 == 0 {
			c.sortByDegree(order)
		}
		c.climb(order)
		isKnown := slices.ContainsFunc(maxima, func(m Mode) bool { return slices.Equal(m.State, c.state) })
		if !isKnown && !c.isForbidden() {
			maxima = append(maxima, c.mode())
		}
	}
	return c, maxima, nil
}

// isStable reports whether a maximum is a mode and no accident of a nearly constant product. An index is firm if its value at the maximum
// has a conditional probability of at least firmProbability. The maximum is stable if at least 1/firmPart of the indices are firm, and if
// most firm indices have the same values after some sweeps of Gibbs sampling that begin at the maximum.
func (c *climber) isStable(m *Mode, r *rand.Rand) bool {
	var firm []int // indices
	for i, p := range m.Conditionals {
		if len(p) > 1 && p[m.State[i]] >= firmProbability {
			firm = append(firm, i)
		}
	}
	if len(firm) == 0 || len(firm)*firmPart < len(m.State) {
		return false
	}

	copy(c.state, m.State)
	c.locate()
	for range gibbsSweeps {
		for i := range c.state {
			c.move(i, draw(c.conditional(i), r))
		}
	}
	unchanged := 0
	for _, i := range firm {
		if c.state[i] == m.State[i] {
			unchanged++
		}
	}
	return float64(unchanged) >= stayShare*float64(len(firm))
}

// draw draws a value a from the distribution p.
func draw(p []float64, r *rand.Rand) (a int) {
	for u := r.Float64(); a < len(p)-1; a++ {
		if u -= p[a]; u < 0 {
			break
		}
	}
	return a
}

// areNear reports whether two states differ in less than 1/distancePart of the indices.
func areNear(a, b []int) bool {
	different := 0
	for i, v := range a {
		if v != b[i] {
			different++
		}
	}
	return different*distancePart < len(a)
}

// mass estimates ln of the total weight around a mode x: ln ψ(x) − Σ_i ln p_i(x_i) with p_i = Conditionals[i]. It is exact for independent
// indices.
func (m *Mode) mass() float64 {
	ln := m.Ln
	for i, p := range m.Conditionals {
		ln -= math.Log(p[m.State[i]])
	}
	return ln
}

// climber is an expression with the current state of an ascent.
type climber struct {
	expression *sumproduct.Expression
	places     [][]place   // by index: its places in the tables that have it
	lnTables   [][]float64 // by table: the logarithms of its entries; an entry of 0 has hardness less than the least of the others
	state      []int       // by index: its value
	positions  []int       // by table: the position of its entry at the state
	scratch    []float64   // by value of an index
}

// place is a table that has an index, with the stride of the index in it: the distance between the entries of neighbouring values.
type place struct{ table, stride int }

// newClimber returns a climber whose state has the value 0 for every index. The positions of the tables' entries are not set (locate). The
// tables have logarithms, in which an entry of 0 is finite, so that an ascent can leave it.
func newClimber(e *sumproduct.Expression) *climber {
	c := &climber{
		expression: e,
		places:     make([][]place, len(e.Dims)),
		state:      make([]int, len(e.Dims)),
		positions:  make([]int, len(e.Tables)),
		scratch:    make([]float64, slices.Max(append(slices.Clone(e.Dims), 1))),
	}
	for t, table := range e.Tables {
		stride := 1
		for k := len(table.Scope) - 1; k >= 0; k-- {
			i := table.Scope[k]
			c.places[i] = append(c.places[i], place{t, stride})
			stride *= e.Dims[i]
		}
		c.lnTables = append(c.lnTables, softLogarithms(table.Data))
	}
	return c
}

// softLogarithms returns the logarithms of entries. An entry of 0 counts as e^-hardness times the least positive one.
func softLogarithms(entries []float64) []float64 {
	ln, least := make([]float64, len(entries)), math.Inf(1) // least: the least logarithm of a positive entry
	for k, x := range entries {
		if ln[k] = floats.Ln(x); x > 0 {
			least = min(least, ln[k])
		}
	}
	if math.IsInf(least, 1) { // no entry is positive
		least = 0
	}
	for k, x := range entries {
		if x == 0 {
			ln[k] = least - hardness
		}
	}
	return ln
}

// setRandom draws a random state. The index with the most tables takes its values in turn instead, by the number of the try.
func (c *climber) setRandom(r *rand.Rand, try int) {
	hub := 0
	for i, d := range c.expression.Dims {
		c.state[i] = r.IntN(d)
		if len(c.places[i]) > len(c.places[hub]) {
			hub = i
		}
	}
	if len(c.state) > 0 {
		c.state[hub] = try % c.expression.Dims[hub]
	}
}

// randomOrder returns all indices in random order.
func (c *climber) randomOrder(r *rand.Rand) []int { return r.Perm(len(c.state)) }

// sortByDegree sorts indices by their number of tables, fewest first. Those with the same number keep their order.
func (c *climber) sortByDegree(indices []int) {
	slices.SortStableFunc(indices, func(i, j int) int { return cmp.Compare(len(c.places[i]), len(c.places[j])) })
}

// locate sets the position of every table's entry at the state.
func (c *climber) locate() {
	for t, table := range c.expression.Tables {
		position := 0
		for _, i := range table.Scope {
			position = position*c.expression.Dims[i] + c.state[i]
		}
		c.positions[t] = position
	}
}

// move gives index i the value a, and updates the positions of its tables' entries.
func (c *climber) move(i, a int) {
	for _, p := range c.places[i] {
		c.positions[p.table] += (a - c.state[i]) * p.stride
	}
	c.state[i] = a
}

// climb changes the state by coordinate ascent: each index in the order takes its most probable value given all others. It ends after a
// pass over all indices that changes nothing, or after as many passes as the constant sweeps allows.
func (c *climber) climb(order []int) {
	c.locate()
	for range sweeps {
		hasMoved := false
		for _, i := range order {
			score, best := c.scores(i), c.state[i]
			for a, s := range score {
				if s > score[best] {
					best = a
				}
			}
			if best != c.state[i] {
				c.move(i, best)
				hasMoved = true
			}
		}
		if !hasMoved {
			return
		}
	}
}

// scores returns, for each value of index i, the logarithm of the product of its tables, given the values of all other indices. The list is
// valid until the next call.
func (c *climber) scores(i int) []float64 {
	score := c.scratch[:c.expression.Dims[i]]
	clear(score)
	for _, p := range c.places[i] {
		position := c.positions[p.table] - c.state[i]*p.stride // of value 0
		for a := range score {
			score[a] += c.lnTables[p.table][position]
			position += p.stride
		}
	}
	return score
}

// isForbidden reports whether some table has an entry of 0 at the state.
func (c *climber) isForbidden() bool {
	for t, position := range c.positions {
		if c.expression.Tables[t].Data[position] == 0 {
			return true
		}
	}
	return false
}

// mode returns the state as a Mode. LnAround is ln of the weight summed over all values of the indices of a set. No two of them share a
// table, so that the sum over each is a factor. The set is chosen greedily: the index that gains most by being summed out comes first.
func (c *climber) mode() Mode {
	m := Mode{State: slices.Clone(c.state), Ln: c.expression.Scale.LogAbs()}
	magnitude := 1 + math.Abs(m.Ln) // the sum of the sizes of the logarithms, by which the rounding is bounded
	for t, position := range c.positions {
		ln := c.lnTables[t][position]
		m.Ln += ln
		magnitude += 1 + math.Abs(ln)
	}

	gain := make([]float64, len(c.state)) // by index: how much ln of the weight grows if it is summed out
	for i := range c.state {
		m.Conditionals = append(m.Conditionals, c.conditional(i))
		gain[i] = -math.Log(m.Conditionals[i][c.state[i]]) // the conditional probability is weight / (sum of the weights over index i)
	}
	m.LnAround = m.Ln - slack*magnitude // slack·magnitude bounds the rounding: LnAround is to be a lower bound
	for _, i := range c.separateIndices(gain) {
		m.LnAround += gain[i]
	}
	return m
}

// separateIndices returns indices no two of which share a table, the largest gain first.
func (c *climber) separateIndices(gain []float64) (separate []int) {
	byGain := make([]int, len(gain)) // all indices, the largest gain first
	for i := range byGain {
		byGain[i] = i
	}
	slices.SortStableFunc(byGain, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	isTaken := make([]bool, len(c.expression.Tables)) // by table: one of its indices is in the list
	for _, i := range byGain {
		if slices.ContainsFunc(c.places[i], func(p place) bool { return isTaken[p.table] }) {
			continue
		}
		for _, p := range c.places[i] {
			isTaken[p.table] = true
		}
		separate = append(separate, i)
	}
	return separate
}

// conditional returns the distribution of index i given the values of all others. Values that a table forbids have probability 0.
func (c *climber) conditional(i int) []float64 {
	p := slices.Clone(c.scores(i)) // by value: ln of the weight, up to a constant, without the entries that are 0
	for a := range p {
		if c.countForbidding(i, a) > 0 {
			p[a] = math.Inf(-1)
		}
	}
	top, total := slices.Max(p), 0.0
	for a := range p { // probabilities in place of logarithms
		p[a] = math.Exp(p[a] - top)
		total += p[a]
	}
	for a := range p {
		p[a] /= total
	}
	return p
}
