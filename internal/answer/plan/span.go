package plan

// What a contraction may lose, said beforehand: entries too far apart for float64, and maps that a network came with.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	wideBits = 128 // a table is wide if log2 of its largest over its smallest entry is more
	spanBits = 900 // the spans that all wide tables together may have: entries 2^−900 below the largest may become 0
	log10of2 = math.Ln2 / math.Ln10
)

// span adds up the spans of wide tables. The span of a table is log2 of the ratio of its largest to its smallest entry, without signs and
// zeros.
type span struct {
	bits float64 // the sum of the spans
	wide int     // the number of wide tables
}

// add adds the span of a table, log2 of its largest over its smallest absolute entry other than 0, if that is above wideBits (128).
func (s *span) add(data []float64) {
	smallest, largest := math.Inf(1), 0.0
	for _, x := range data {
		if x = math.Abs(x); x > 0 {
			smallest, largest = min(smallest, x), max(largest, x)
		}
	}
	if largest == 0 || largest*0x1p-126 <= smallest { // at most 126 bits: not wide, and no time is needed for logarithms
		return
	}
	if bits := math.Log2(largest) - math.Log2(smallest); bits > wideBits {
		s.bits += bits
		s.wide++
	}
}

// addTensor adds the span of the table of a dense tensor, or of the weights of a CP tensor.
func (s *span) addTensor(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		s.add(t.Data)
	case *tensor.CP:
		s.add(t.Weights)
	}
}

// spanOfCores returns the sum of the spans of the cores of a network, which evidence does not change. Linear time.
func spanOfCores(net *btn.Network) (s span) {
	for _, core := range net.Cores {
		s.addTensor(core.T)
	}
	return s
}

// warnings returns a warning if terms of the total may be lost. The span of a tensor is log2 of the ratio of its largest to its smallest
// entry; tensors of a small span do not count. s has the sum of the spans of the cores, the tensors that evidence does not change. warnings
// adds the spans of the links of net, the tensors that evidence changes, and warns if all are more than spanBits together. A term above 0
// may then become 0 beside larger terms, and if other factors exclude these, the total misses the terms that count. Usually the larger
// terms stay, so the warning says may. Linear time.
func (s span) warnings(net *btn.Network) []string {
	for _, link := range net.Links {
		s.addTensor(link.T) // in this copy of s only: the next query has other links
	}
	if s.bits <= spanBits {
		return nil
	}
	return []string{fmt.Sprintf("%d factors and weights have entries that span 10^%.0f together, more "+
		"than float64 holds: terms far below the largest may be missing from the total",
		s.wide, s.bits*log10of2)}
}

// mapWarnings returns a warning if a leg, an index that joins two tensors, has a linear map other than the identity. The tensors were
// multiplied by the inverses of the maps, so that entries of 10^-16 of the largest one of a tensor are rounding. Z does not depend on maps,
// but its digits do.
func mapWarnings(net *btn.Network) []string {
	for _, m := range net.Maps {
		if m.A != nil {
			return []string{"not marked exact: the network has maps on its legs, and entries far below " +
				"the largest of a tensor are lost in their rounding"}
		}
	}
	return nil
}
