package closed

// The way back over the product of the links' count polynomials:
// ∂Z/∂p_j for every link that has a variable's weights.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// backward is one pass forth and back over polynomials ps, and what to do with a derivative.
type backward struct {
	form
	vars    int                 // count variables of the polynomials
	ps      []countspace.Poly   // by link
	weights []tensor.LegWeights // by leg
}

// visit takes the derivative h of Z by the polynomial of link k, over the box of that polynomial.
func (b backward) visit(k int, h countspace.Poly) error {
	return b.link(k, h, scaled.One, b.weights)
}

// wanted says whether anybody asks for the derivative by link k.
func (b backward) wanted(k int) bool { return b.M.Variable[k] >= 0 }

// run returns Σ_c S_c [z^c] Π ps, the bits of product and Dot,
// and visits the links that are wanted. With Z = Σ_c h_c [z^c] p q, the derivative by q is
//
//	h'_k = Σ_c p_c h_{k+c}
//
// (countspace.Correlate), as much work as p·q itself, for each of both factors.
func (b backward) run(s countspace.Poly) (scaled.Number, error) {
	if b.vars > 1 {
		return b.chain(s)
	}
	return b.tree(s)
}

// branch is a node of the product tree; leaves have no children.
type branch struct {
	p           countspace.Poly // the product of its leaves
	link        int             // of a leaf
	left, right *branch
	wanted      bool // a leaf below it is wanted
}

// tree is run in one variable, along a balanced product tree.
func (b backward) tree(s countspace.Poly) (scaled.Number, error) {
	if len(b.ps) == 0 {
		return countspace.Dot(s, countspace.Constant(b.vars, scaled.One), b.Ops), nil
	}
	if err := b.roomForTree(); err != nil {
		return scaled.Number{}, err
	}

	root, err := b.grow(0, len(b.ps))
	if err != nil {
		return scaled.Number{}, err
	}

	z := countspace.Dot(s, root.p, b.Ops)
	return z, b.descend(root, countspace.Crop(s, root.p.Shape))
}

// grow multiplies ps[from:to] along the tree that product and countspace.Product use.
func (b backward) grow(from, to int) (*branch, error) {
	if err := b.Ctx.Err(); err != nil {
		return nil, err
	}
	if to-from == 1 {
		return &branch{p: b.ps[from], link: from, wanted: b.wanted(from)}, nil
	}

	half := from + (to-from)/2
	left, err := b.grow(from, half)
	if err != nil {
		return nil, err
	}
	right, err := b.grow(half, to)
	if err != nil {
		return nil, err
	}

	return &branch{
		p:      left.p.Mul(right.p, b.Ops),
		left:   left,
		right:  right,
		wanted: left.wanted || right.wanted,
	}, nil
}

// descend carries the derivative h by a node's polynomial down to its leaves.
func (b backward) descend(n *branch, h countspace.Poly) error {
	if !n.wanted {
		return nil
	}
	if n.left == nil {
		return b.visit(n.link, h)
	}
	if err := b.Ctx.Err(); err != nil {
		return err
	}

	// Let go of what nobody reads again.
	n.p = countspace.Poly{}

	// Both correlations read the siblings' polynomials:
	// h by the right factor is h against the left one.
	right := countspace.Poly{}
	if n.right.wanted {
		right = countspace.Correlate(h, n.left.p, b.Ops)
	}
	if n.left.wanted {
		if err := b.descend(n.left, countspace.Correlate(h, n.right.p, b.Ops)); err != nil {
			return err
		}
	}

	n.left = nil
	return b.descend(n.right, right)
}

// bytesPerCoefficient is a float64 and an int64.
const bytesPerCoefficient = 16

// roomForTree compares all products of the tree,
// and twice as much as its root for derivatives and copies, with the budget.
func (b backward) roomForTree() error {
	degree := func(p countspace.Poly) float64 { return float64(p.Size() - 1) }
	total := 0.0
	var grow func(from, to int) float64
	grow = func(from, to int) float64 {
		d := 0.0
		if to-from == 1 {
			d = degree(b.ps[from])
		} else {
			half := from + (to-from)/2
			d = grow(from, half) + grow(half, to)
		}
		total += d + 1
		return d
	}

	root := grow(0, len(b.ps)) + 1
	return b.room(bytesPerCoefficient * (total + 4*root))
}

// room compares bytes of count polynomials with the budget.
func (b backward) room(need float64) error {
	if need > float64(b.Memory) {
		return fault.New(fault.OverBudget,
			"%w: all marginals at once need %.0f bytes of count polynomials, the budget is %d",
			contraction.ErrMemory, need, b.Memory)
	}
	return nil
}

// chain multiplies as product does in two and more variables, the largest polynomial by one after
// the other. The way back needs every partial product. Where they are too many for the budget,
// every ⌈√k⌉th is kept and the others are computed again, run by run: four times the cost of Z in
// all, where it is three.
func (b backward) chain(s countspace.Poly) (scaled.Number, error) {
	if len(b.ps) == 0 {
		return countspace.Dot(s, countspace.Constant(b.vars, scaled.One), b.Ops), nil
	}
	order := largestFirst(b.ps)
	stride, err := b.stride(order)
	if err != nil {
		return scaled.Number{}, err
	}

	kept := make([]countspace.Poly, len(order)) // partial products, those in reach
	kept[0] = b.ps[order[0]]

	// forth multiplies from one kept product on; all: every partial product on the way is kept.
	forth := func(from, to int, all bool) error {
		p := kept[from]
		for i := from + 1; i < to; i++ {
			if err := b.Ctx.Err(); err != nil {
				return err
			}
			p = p.Mul(b.ps[order[i]], b.Ops)
			if all || i%stride == 0 || i == len(order)-1 {
				kept[i] = p
			}
		}
		return nil
	}

	if err := forth(0, len(order), false); err != nil {
		return scaled.Number{}, err
	}

	last := len(order) - 1
	z := countspace.Dot(s, kept[last], b.Ops)
	h := countspace.Crop(s, kept[last].Shape)

	least := 0 // nothing before it is wanted
	for least < last && !b.wanted(order[least]) {
		least++
	}
	for i := last; i > 0; i-- {
		if i < least {
			return z, nil
		}

		if err := b.Ctx.Err(); err != nil {
			return scaled.Number{}, err
		}

		// Partial products between two kept ones are computed again.
		if kept[i-1].Shape == nil {
			if err := forth((i-1)/stride*stride, i, true); err != nil {
				return scaled.Number{}, err
			}
		}

		if b.wanted(order[i]) {
			if err := b.visit(order[i], countspace.Correlate(h, kept[i-1], b.Ops)); err != nil {
				return scaled.Number{}, err
			}
		}

		kept[i] = countspace.Poly{}
		if i > least {
			h = countspace.Correlate(h, b.ps[order[i]], b.Ops)
		}
	}

	if b.wanted(order[0]) {
		return z, b.visit(order[0], h)
	}
	return z, nil
}

// stride returns 1 when all partial products fit the budget,
// else ⌈√k⌉ when those kept and one run between them do.
func (b backward) stride(order []int) (int, error) {
	sizes := make([]float64, len(order))

	// The box of a partial product: its sides add up, less one for every factor after the first.
	shape := make([]float64, b.vars)
	for i, k := range order {
		sizes[i] = 1
		for a, s := range b.ps[k].Shape {
			shape[a] += float64(s)
			if i > 0 {
				shape[a]--
			}
			sizes[i] *= shape[a]
		}
	}

	need := 0.0
	for _, stride := range []int{1, int(math.Ceil(math.Sqrt(float64(len(order)))))} {
		kept := 0.0
		run := 0.0 // since the last one kept
		longest := 0.0
		for i, size := range sizes {
			if i%stride == 0 {
				kept += size
				run = 0
			} else {
				run += size
			}
			longest = max(longest, run)
		}

		need = bytesPerCoefficient * (kept + longest + 4*sizes[len(sizes)-1])
		if need <= float64(b.Memory) {
			return stride, nil
		}
	}
	return 0, b.room(need)
}
