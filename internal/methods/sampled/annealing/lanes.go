package annealing

// Eight chains over spins side by side, in float32: one vector of a processor. The loops are the same, operation by operation, with
// vectors and without, so that they give the same bits.
//
// A sweep carries every spin from one rung to the next, one spin after the other. With β_i the rung that spin i is at, the weight
// of a state is Π_i e^{(b_i + β_i h_i) s_i} Π_{i<j} e^{√(β_i β_j) J_ij s_i s_j}. A spin is summed out while it is carried: the
// weight is multiplied by the ratio of 2cosh of its field at the new rung and at the old, and the spin is redrawn from the new
// one (Rao-Blackwell: the spin's own old value adds no variance).

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/ising"
)

// unit turns a field h into the log odds of a spin in powers of 2: log2 of p(+1)/p(−1) = e^{2h} is 2h·log2(e).
const unit = 2 * math.Log2E

// spinModel is a model of spins in the form for the loops. Fields and couplings are log odds in powers of 2. Spins are in the order of
// their steps. Eight chains have rows of eight numbers, one for each chain: a row for each spin, and a row for each spin's field.
type spinModel struct {
	model            *ising.Model
	order            []int        // by spin: its index in the expression
	n                int          // number of spins
	fields           []float32    // by spin, padded to eight
	startOdds        []float32    // by spin: log odds of +1 where chains begin, padded to eight
	startUp          []float64    // by spin: probability of +1 where chains begin
	neighbourEnds    []int32      // by spin: the end of its neighbours in neighbourOffsets and couplings
	neighbourOffsets []int32      // of the neighbours' field rows, in bytes
	couplings        []float32    // to the neighbours
	denseRows        []eightSpins // nil: fields are updated with every step
	forests          *forests     // nil: spins take steps one by one
}

// eightSpins are eight spins of a dense model, whose fields are computed together before they take their steps.
type eightSpins struct {
	count          int       // number of spins; below eight for the last spins of the model
	couplings      []float32 // couplings[k·8+r] = J_{k, first+r}
	laterEnds      []int32   // by spin of the eight: the end of its couplings in laterOffsets and laterCouplings
	laterOffsets   []int32   // of the field rows of those of the eight spins that step later, in bytes
	laterCouplings []float32 // of each of the eight spins to those of the eight that step later
}

// denseShare is the share of all pairs of spins with a coupling from which on fields are recomputed rather than updated. Measured:
// bipartite models of 40 and 40 (a half) take a fifth less time, 24 neighbours among 120 (a fifth) two thirds more.
const denseShare = 0.45

// newSpinModel returns the model s in the form for the loops. Chains begin with independent spins: startOdds[i] is the log odds of spin i,
// in powers of 2. Weights are relative to that start.
func newSpinModel(s *ising.Model, startOdds []float32) *spinModel {
	order := make([]int, s.N)
	for i := range order {
		order[i] = i
	}
	isDense := float64(len(s.To)) >= denseShare*float64(s.N)*float64(s.N)
	if !isDense {
		// Spins of one colour have no couplings with each other. They take steps colour by colour, since neighbours in sequence would wait
		// for one another. Measured on lattices: two thirds of the time.
		order = slices.Concat(s.Colours()...)
		s, startOdds = s.Reordered(order), reordered(startOdds, order)
	}
	l := newOrderedSpins(s, startOdds, order)
	if isDense {
		l.makeDenseRows()
	}
	return l
}

// newOrderedSpins returns the model s, whose spins are in the order of their steps, in the form for the loops. order[i] is the index of
// spin i in the expression, and startOdds[i] its log odds where chains begin. In the model, couplings First[i] ≤ k < First[i+1] are those
// of spin i, J[k] to spin To[k]; in the form, a spin is a row of eight numbers of 4 bytes, one for each chain.
func newOrderedSpins(s *ising.Model, startOdds []float32, order []int) *spinModel {
	l := &spinModel{
		model: s, order: order, n: s.N, startUp: make([]float64, s.N),
		startOdds: append(slices.Clone(startOdds), make([]float32, GroupSize)...), fields: make([]float32, s.N+GroupSize), // padded
		// One more, so that the loops can point to the first entry if there is none.
		neighbourEnds: make([]int32, s.N+1), neighbourOffsets: make([]int32, len(s.To)+1), couplings: make([]float32, len(s.J)+1),
	}
	for i, h := range s.H { // unit turns a field into log odds in powers of 2
		l.fields[i] = float32(unit * h)
		l.startUp[i] = 1 / (1 + math.Exp2(-float64(startOdds[i])))
		l.neighbourEnds[i] = s.First[i+1]
	}
	for k, to := range s.To {
		l.neighbourOffsets[k] = to * 4 * GroupSize // in bytes
		l.couplings[k] = float32(unit * s.J[k])
	}
	return l
}

// reordered returns the entries of x in another sequence: x[order[0]], x[order[1]] and so on.
func reordered(x []float32, order []int) (y []float32) {
	for _, i := range order {
		y = append(y, x[i])
	}
	return y
}

// makeDenseRows divides the spins of a dense model into runs of eight, which take their steps one after the other. A run r has two lists of
// couplings: r.couplings[j·8+c] between any spin j of the model and spin c of the run, and r.laterCouplings from each spin of the run to
// the spins of the run that step after it. In the model, couplings first[i] ≤ k < first[i+1] are those of spin i, to spin ends[k].
func (l *spinModel) makeDenseRows() {
	first, ends := l.model.First, l.model.To
	for begin := 0; begin < l.n; begin += GroupSize {
		r := eightSpins{count: min(GroupSize, l.n-begin), couplings: make([]float32, l.n*GroupSize)}
		for i := begin; i < begin+r.count; i++ {
			for k := first[i]; k < first[i+1]; k++ {
				neighbour := int(ends[k])
				r.couplings[neighbour*GroupSize+i-begin] = l.couplings[k]
				isLater := neighbour > i && neighbour < begin+GroupSize
				if isLater {
					r.laterOffsets = append(r.laterOffsets, int32(neighbour-begin)*4*GroupSize) // in bytes
					r.laterCouplings = append(r.laterCouplings, l.couplings[k])
				}
			}
			r.laterEnds = append(r.laterEnds, int32(len(r.laterOffsets)))
		}
		r.laterOffsets = append(r.laterOffsets, 0) // so that the loops can point to the first
		r.laterCouplings = append(r.laterCouplings, 0)
		l.denseRows = append(l.denseRows, r)
	}
}

// sweepFlops returns the time of a sweep of one chain in flops, if eight chains run side by side. The spins of a dense model also take
// their steps by eight (eightSpins), whose fields are computed together. Measured on complete models of 40 and 100 spins, bipartite ones of
// 40 and 40, and sparse ones of degree 3 to 40.
func (l *spinModel) sweepFlops() float64 {
	n := float64(l.n)
	if l.denseRows == nil { // a step for each spin, and changes of fields for each coupling
		return 5.2*n + 0.29*float64(len(l.model.To))
	}
	work := n * (9 + 0.06*n) // a step for each spin, and its field as a sum over all spins
	for _, spins := range l.denseRows {
		// The fields of eight spins are computed (computeFields) before any of the eight spins takes its step. So each step then changes the
		// fields of those of the eight spins that take theirs later: one change for each coupling to such a spin.
		work += 1.3 * float64(len(spins.laterCouplings)) // measured
	}
	return work
}

// fixedFlops returns the work of a chain that does not depend on its rungs: its first state, the first fields, the last weight and its
// counting. Measured on complete models and rings with chords of 17 to 100 spins.
func (l *spinModel) fixedFlops() float64 {
	return 1000 + 84*float64(l.n) + 2.2*float64(len(l.model.To))
}

// forestSweepFlops returns the time of a sweep of one chain by forests in flops. Measured on random models of degree 2 to 8.
func (l *spinModel) forestSweepFlops() float64 {
	return 6.3*float64(l.n) + 0.22*float64(len(l.model.To))
}

// spinChains are eight chains over spins: spin i of chain c is spins[i·8+c].
type spinChains struct {
	*spinModel
	spins []float32 // ±1
	// fieldRows[i·8+c] is the field Σ_j √β_j J_ij s_j of spin i in chain c. A dense model has only the fields of eight spins at a time.
	fieldRows []float32
	random
	weight
	messages    *messages          // nil without forests
	product     [GroupSize]float64 // by chain: the factors that have left newProduct and oldProduct and are not in gain yet
	factorCount int                // number of spins with a factor in newProduct and oldProduct
}

// weight is the loops' contribution to the weights of eight chains. The assembly knows the layout.
type weight struct {
	gain       [GroupSize]float64 // Σ |x| at the new rungs less that at the old, with x the log odds in powers of 2
	newProduct [GroupSize]float32 // Π (1 + 2^−|x|) at the new rungs
	oldProduct [GroupSize]float32 // the same at the old rungs
}

// renewalRungs is the number of rungs after which fields and energies are recomputed, so that roundings do not add up.
const renewalRungs = 256

// maxFactors limits the factors, each at most 2, of a product in float32: the product is at most 2^96, and float32 ends at 2^128.
const maxFactors = 96

// anneal carries chains first to first+7 along a path, which leads from independent spins at β = 0 to the model at β = 1 in p.Rungs steps.
// It adds the chains' log-weights to ln. With keepsStates it returns their last states (lastStates). It returns nil if the context ends.
func (l *spinModel) anneal(ctx context.Context, p Path, first int64, ln []float64, keepsStates bool) []uint8 {
	// A sweep carries every spin from one rung to the next, which are given by their √β.
	b := l.startChains(p.Seed, uint64(first))
	oldRoot := float32(0)
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		if k%renewalRungs == 0 && b.denseRows == nil { // a dense model computes all fields in every sweep
			b.recomputeFields(oldRoot)
		}
		root := float32(math.Sqrt(p.Beta(k + 1)))
		if b.forests != nil {
			b.sweepForests(oldRoot, root)
		} else {
			b.sweep(oldRoot, root, p.Step)
		}
		oldRoot = root
		if part := p.checkpointAt(k + 1); part >= 0 { // record the log-weights at the end of this part of the rungs
			b.addLogWeights(p.checkpoints.lnWeights[part][first-p.checkpoints.first:][:GroupSize])
		}
	}
	b.addLogWeights(ln)
	correction := b.roundingCorrection()
	for c := range ln {
		ln[c] += correction[c]
	}
	if !keepsStates {
		return nil
	}
	return b.lastStates()
}

// lastStates returns the present states: states[i·8+c] is the value of index i in the c-th chain. A spin of −1 is value 0, and one of +1 is
// value 1.
func (b *spinChains) lastStates() []uint8 {
	states := make([]uint8, b.n*GroupSize)
	for k, s := range b.spins[:b.n*GroupSize] { // by spin and chain; the index of a spin is in order
		if s > 0 {
			states[b.order[k/GroupSize]*GroupSize+k%GroupSize] = 1
		}
	}
	return states
}

// startChains returns chains first to first+7, each at a state that is drawn from the start distribution.
func (l *spinModel) startChains(seed, first uint64) *spinChains {
	b := &spinChains{
		spinModel: l, spins: make([]float32, (l.n+1)*GroupSize), fieldRows: make([]float32, (l.n+GroupSize)*GroupSize),
		random: newRandom(seed, first),
	}
	for i := range l.n {
		for c := range GroupSize { // spin i of chain c
			b.spins[i*GroupSize+c] = -1
			if float64(b.nextWord(c))*0x1p-32 < l.startUp[i] { // a word has 32 bits: uniform in [0, 1)
				b.spins[i*GroupSize+c] = 1
			}
		}
	}
	for c := range GroupSize {
		b.newProduct[c], b.oldProduct[c], b.product[c] = 1, 1, 1
	}
	if l.forests != nil {
		b.messages = l.newMessages()
	}
	return b
}

// recomputeFields computes the fields Σ_j √β J_ij s_j anew from the spins, so that roundings do not add up. All spins are at the same β,
// and root is √β.
func (b *spinChains) recomputeFields(root float32) {
	clear(b.fieldRows)
	for i := range b.n {
		for k := b.model.First[i]; k < b.model.First[i+1]; k++ {
			neighbour := int(b.model.To[k]) * GroupSize
			for c := range GroupSize {
				b.fieldRows[neighbour+c] += float32(b.couplings[k] * b.spins[i*GroupSize+c])
			}
		}
	}
	for k := range b.fieldRows {
		b.fieldRows[k] *= root
	}
}

// reserveFactors makes room for the factors of n more spins in newProduct and oldProduct, which are float32. If there would be more than
// maxFactors, the ratio newProduct/oldProduct of each chain moves to its product, which is float64. Before product leaves the range of
// float64, its logarithm moves to gain, which is twice the log2 of the chain's weight.
func (b *spinChains) reserveFactors(n int) {
	if b.factorCount += n; b.factorCount <= maxFactors {
		return
	}
	b.factorCount = n
	for c := range GroupSize {
		b.product[c] *= float64(b.newProduct[c]) / float64(b.oldProduct[c])
		b.newProduct[c], b.oldProduct[c] = 1, 1
		if b.product[c] < 1e-200 || b.product[c] > 1e200 { // float64 ends at 1e±308, and a ratio is within 2^±96
			b.gain[c] += 2 * math.Log2(b.product[c])
			b.product[c] = 1
		}
	}
}

// addLogWeights adds the log-weight of every chain so far to ln. The weight is 2^{gain/2} times the factors that are not in gain yet.
func (b *spinChains) addLogWeights(ln []float64) {
	for c := range ln {
		product := b.product[c] * float64(b.newProduct[c]) / float64(b.oldProduct[c])
		ln[c] += b.gain[c]*(math.Ln2/2) + math.Log(product)
	}
}

// roundingCorrection returns a correction of the log-weight of every chain. Chains walk to a model whose fields and couplings are rounded
// to float32. The correction is ln ψ of the chain's last state in the model less ln ψ of the same state in the rounded model.
func (b *spinChains) roundingCorrection() (ln [GroupSize]float64) {
	m := b.model
	for i := range m.N {
		var field [GroupSize]float64
		fieldError := m.H[i] - float64(b.fields[i])/unit // fields[i] is unit·H[i] rounded to float32
		for c := range field {
			field[c] = fieldError
		}
		for k := m.First[i]; k < m.First[i+1]; k++ {
			if int(m.To[k]) < i { // the coupling was counted at that spin
				continue
			}
			couplingError := m.J[k] - float64(b.couplings[k])/unit
			for c, s := range b.spins[int(m.To[k])*GroupSize:][:GroupSize] {
				field[c] += couplingError * float64(s)
			}
		}
		for c, s := range b.spins[i*GroupSize:][:GroupSize] {
			ln[c] += field[c] * float64(s)
		}
	}
	return ln
}

// sweepArgs are the arguments of sweepVector: some spins that take steps, and the couplings along which fields change. The assembly knows
// the layout.
type sweepArgs struct {
	spinCount        int64
	spins            *float32
	fieldRows        *float32 // the rows that neighbourOffsets point into
	ownFields        *float32 // field row of the first of the spins
	neighbourEnds    *int32   // by spin: the end of its couplings
	neighbourOffsets *int32
	couplings        *float32
	fields           *float32 // by spin: its field without neighbours
	startOdds        *float32
	generators       *random
	weight           *weight
	firstCoupling    int64 // the first coupling of the first spin
	old, new         rung
	step             Step
}

// rung is a place on the path: β and √β.
type rung struct{ beta, root float32 }

// fieldArgs are the arguments of fieldsVector, which computes the fields of eight spins. The assembly knows the layout.
type fieldArgs struct {
	spinCount  int64 // number of all spins
	movedCount int64 // number of spins at the new rung
	spins      *float32
	couplings  *float32 // eight for each spin
	fieldRows  *float32 // of the eight
	oldRoot    float32  // √β of the old rung
	newRoot    float32  // √β of the new rung
}

// sweep carries every spin of all eight chains from one rung, a value of β, to another. The two are given by their √β. A spin's step
// changes the fields of its neighbours. In a dense model the fields of eight spins (r of denseRows) are computed at once instead, and a
// spin's step only changes those of these eight fields whose spins step later.
//
// Each step multiplies the weight's products newProduct and oldProduct, which are float32, by a factor of at most 2. So reserveFactors
// makes room in them for the steps of at most maxFactors spins at a time.
func (b *spinChains) sweep(oldRoot, newRoot float32, step Step) {
	old, new := rung{oldRoot * oldRoot, oldRoot}, rung{newRoot * newRoot, newRoot}
	a := sweepArgs{generators: &b.random, weight: &b.weight, old: old, new: new, step: step}
	if b.denseRows == nil {
		for first := 0; first < b.n; first += maxFactors {
			n := min(maxFactors, b.n-first)
			b.reserveFactors(n)
			b.stepSpins(&a, stepRange{
				first: first, n: n, firstCoupling: int(b.model.First[first]),
				fieldRows: b.fieldRows, ownFields: b.fieldRows[first*GroupSize:], // fieldRows has all spins
				neighbourEnds: b.neighbourEnds[first:], neighbourOffsets: b.neighbourOffsets, couplings: b.couplings,
			})
		}
		return
	}
	for k := range b.denseRows {
		r := &b.denseRows[k]
		b.computeFields(r, k*GroupSize, oldRoot, newRoot)
		b.reserveFactors(r.count)
		b.stepSpins(&a, stepRange{
			first: k * GroupSize, n: r.count, fieldRows: b.fieldRows, ownFields: b.fieldRows, // fieldRows has only the eight spins
			neighbourEnds: r.laterEnds, neighbourOffsets: r.laterOffsets, couplings: r.laterCouplings,
		})
	}
}

// stepRange is some spins that take steps, and the couplings along which fields change.
type stepRange struct {
	first, n         int       // the first spin, and the number of spins
	firstCoupling    int       // index of the first coupling of the first spin
	fieldRows        []float32 // rows that neighbourOffsets point into
	ownFields        []float32 // rows from the first spin on
	neighbourEnds    []int32   // by spin from the first on: the end of its couplings
	neighbourOffsets []int32   // by coupling: the neighbour's row in fieldRows, in bytes
	couplings        []float32
}

// stepSpins carries the spins of a range from a.old to a.new, two values of β, with the processor's vectors if it has them.
func (b *spinChains) stepSpins(a *sweepArgs, r stepRange) {
	if !vectors {
		b.stepSpinsPortable(a, r)
		return
	}
	a.spinCount, a.firstCoupling = int64(r.n), int64(r.firstCoupling)
	a.spins, a.fields, a.startOdds = &b.spins[r.first*GroupSize], &b.fields[r.first], &b.startOdds[r.first]
	a.fieldRows, a.ownFields = &r.fieldRows[0], &r.ownFields[0]
	a.neighbourEnds, a.neighbourOffsets, a.couplings = &r.neighbourEnds[0], &r.neighbourOffsets[0], &r.couplings[0]
	sweepVector(a)
}

// stepSpinsPortable is stepSpins without vectors. A rung is a value of β. Each spin in turn is drawn at the new rung in all eight chains c.
// Its log odds at a rung, in powers of 2, are √β·field + β·h + start. Here field is the sum over its neighbours, h its own field, and start
// the log odds with which chains begin. Rows have eight numbers, one for each chain. The weight of a chain is multiplied by 2cosh of the
// spin's field at the new rung over that at the old: with log odds y and x that is 2^{(|y|−|x|)/2} (1 + 2^−|y|)/(1 + 2^−|x|). |y|−|x| is
// added to gain, twice the log2 of the weight, and the other factors go to newProduct and oldProduct.
func (b *spinChains) stepSpinsPortable(a *sweepArgs, r stepRange) {
	k := int32(r.firstCoupling)
	for i := range r.n {
		row, field := b.spins[(r.first+i)*GroupSize:][:GroupSize], r.ownFields[i*GroupSize:][:GroupSize]
		h, start := b.fields[r.first+i], b.startOdds[r.first+i]
		var change [GroupSize]float32
		for c := range row {
			u := float32(float32(int32(b.nextWord(c)>>1)) * 0x1p-31) // uniform in [0, 1)
			// x and y are the log odds of the spin at the old rung and at the new one.
			x := float32(a.old.root*field[c]) + float32(float32(a.old.beta*h)+start)
			y := float32(a.new.root*field[c]) + float32(float32(a.new.beta*h)+start)
			absX, absY := float32(math.Abs(float64(x))), float32(math.Abs(float64(y)))
			b.gain[c] += float64(absY - absX)
			oldFactor := 1 + exp2Minus(min(absX, 126)) // exp2Minus takes arguments up to 126
			ratio := exp2Minus(min(absY, 126))
			b.oldProduct[c] *= oldFactor
			b.newProduct[c] *= 1 + ratio
			s := stepSpin(row[c], x, y, oldFactor, ratio, u, a.step)
			change[c] = float32(a.new.root*s) - float32(a.old.root*row[c])
			row[c] = s
		}

		// Change the fields of the neighbours, from √β s at the old rung to √β s at the new one.
		for ; k < r.neighbourEnds[i]; k++ {
			neighbour := int(r.neighbourOffsets[k]) / 4
			for c := range change {
				r.fieldRows[neighbour+c] += float32(r.couplings[k] * change[c])
			}
		}
	}
}

// stepSpin returns the spin ±1 after a step from the spin old, which leads from one rung, a value of β, to the next. x and y are its log
// odds at the old rung and at the new one. ratio is the probability of the unlikely value over that of the likely one at the new rung, and
// oldFactor is 1 plus that at the old rung. u is uniform in [0, 1).
//
// The unlikely value has probability ratio/(1+ratio). A Metropolis step always leaves the unlikely value. It leaves the likely value, which
// had probability 1/oldFactor at the old rung, with probability ratio·oldFactor/(1+ratio): so the unlikely value gets probability
// ratio/(1+ratio), too. That needs the same likely value at the two rungs. If it differs, the step is one of the heat bath.
func stepSpin(old, x, y, oldFactor, ratio, u float32, step Step) float32 {
	u *= 1 + ratio
	isUnlikely := u < ratio
	haveSameSign := math.Signbit(float64(x)) == math.Signbit(float64(y))
	if step == Metropolis && haveSameSign {
		wasLikely := math.Signbit(float64(old)) == math.Signbit(float64(y))
		isUnlikely = wasLikely && u < float32(ratio*oldFactor)
	}
	s := float32(math.Copysign(1, float64(y))) // the likely value
	if isUnlikely {
		return -s
	}
	return s
}

// computeFields computes the fields of eight spins from first on in all chains: fieldRows[k·8+c] = Σ_i √β_i J_ik s_i for the k-th of them
// in chain c. A rung is a value of β. The spins before first are at the new rung, with newRoot as √β_i, and all others at the old one, with
// oldRoot.
func (b *spinChains) computeFields(r *eightSpins, first int, oldRoot, newRoot float32) {
	if vectors {
		f := fieldArgs{
			spinCount: int64(b.n), movedCount: int64(first), spins: &b.spins[0], couplings: &r.couplings[0], fieldRows: &b.fieldRows[0],
			oldRoot: oldRoot, newRoot: newRoot,
		}
		fieldsVector(&f)
		return
	}
	for k := range GroupSize {
		for c := range GroupSize {
			newSum, oldSum := float32(0), float32(0)
			for i := range first {
				newSum += float32(r.couplings[i*GroupSize+k] * b.spins[i*GroupSize+c])
			}
			for i := first; i < b.n; i++ {
				oldSum += float32(r.couplings[i*GroupSize+k] * b.spins[i*GroupSize+c])
			}
			b.fieldRows[k*GroupSize+c] = float32(newRoot*newSum) + float32(oldRoot*oldSum)
		}
	}
}

// exp2Minus returns 2^-x for x from −126 to 126, within 2.5e-7 of its value. It uses the polynomial of degree 5 whose largest relative
// error is least.
func exp2Minus(x float32) float32 {
	// 2^-x = 2^-k 2^f with −1/2 ≤ f ≤ 1/2. The polynomial is 2^f − 1, and k is subtracted from the exponent bits.
	k := float32(math.RoundToEven(float64(x)))
	f := k - x
	p := float32(f * 0x1.5bb98cp-10)
	p = float32(float32(p+0x1.3cea94p-7) * f)
	p = float32(float32(p+0x1.c6b754p-5) * f)
	p = float32(float32(p+0x1.ebf9bcp-3) * f)
	p = float32(float32(p+0x1.62e42ap-1) * f)
	return math.Float32frombits(math.Float32bits(p+1) - uint32(int32(k))<<23)
}
