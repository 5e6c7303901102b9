package plan

// What a contraction may lose, said beforehand: entries too far apart for float64, and maps that a network came with.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	wideBits = 128 // tables whose entries are further apart count
	spanBits = 900 // what tables keep: entries 2^−900 below the largest may become 0
	log10of2 = math.Ln2 / math.Ln10
)

// span adds up how far the entries of wide tables are apart.
type span struct {
	bits float64
	wide int
}

// count adds a table if its entries are further apart than wideBits.
func (s *span) count(data []float64) {
	low, top := math.Inf(1), 0.0
	for _, x := range data {
		if x = math.Abs(x); x > 0 {
			low, top = min(low, x), max(top, x)
		}
	}
	if top == 0 || top*0x1p-126 <= low { // the logarithms would say so
		return
	}
	if bits := math.Log2(top) - math.Log2(low); bits > wideBits {
		s.bits += bits
		s.wide++
	}
}

// countTensor adds the table of a dense tensor, and the weights of a CP one.
func (s *span) countTensor(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		s.count(t.Data)
	case *tensor.CP:
		s.count(t.Weights)
	}
}

// coreSpan is the part that evidence does not change. Linear time.
func coreSpan(net *btn.Network) (s span) {
	for _, core := range net.Cores {
		s.countTensor(core.T)
	}
	return s
}

// warnings warns where terms of the total may be lost: the wide tables of a conditioned network, s being
// those of its cores, dense factors and weights of variables, span more together than one table of float64
// holds. Terms above 0 then may become 0, and where other factors exclude the larger ones, the total misses
// what counts. It says may: mostly the larger ones stay. Linear time.
func (s span) warnings(net *btn.Network) []string {
	for _, link := range net.Links {
		s.countTensor(link.T)
	}
	if s.bits <= spanBits {
		return nil
	}
	return []string{fmt.Sprintf("%d factors and weights have entries that span 10^%.0f together, more "+
		"than float64 holds: terms far below the largest may be missing from the total",
		s.wide, s.bits*log10of2)}
}

// mapWarnings warns where legs have maps other than the identity: the tensors were multiplied by their
// inverses, and entries 10^-16 of the largest beside them are rounding. Z does not depend on maps, and its
// digits do.
func mapWarnings(net *btn.Network) []string {
	for _, m := range net.Maps {
		if m.A != nil {
			return []string{"not marked exact: the network has maps on its legs, and entries far below " +
				"the largest of a tensor are lost in their rounding"}
		}
	}
	return nil
}
