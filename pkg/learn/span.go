package learn

// Entries too far apart for float64: what a contraction may lose, said beforehand.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	wideBits = 128 // tables whose entries are further apart count
	spanBits = 900 // what tables keep: entries 2^−900 below the largest may become 0
	log10of2 = math.Ln2 / math.Ln10
)

// spanWarnings warns where terms of the total may be lost: the wide tables of a conditioned network, dense factors and
// weights of variables, span more together than one table of float64 holds. Terms above 0 then may become 0, and where other
// factors exclude the larger ones, the total misses what counts. It says may: mostly the larger ones stay. Linear time.
func spanWarnings(net *btn.Network) []string {
	total, wide := 0.0, 0
	count := func(data []float64) {
		low, top := math.Inf(1), 0.0
		for _, x := range data {
			if x = math.Abs(x); x > 0 {
				low, top = min(low, x), max(top, x)
			}
		}
		if top == 0 {
			return
		}
		if bits := math.Log2(top) - math.Log2(low); bits > wideBits {
			total += bits
			wide++
		}
	}
	for _, core := range net.Cores {
		if t, ok := core.T.(*tensor.Dense); ok {
			count(t.Data)
		} else if t, ok := core.T.(*tensor.CP); ok {
			count(t.Weights)
		}
	}
	for _, link := range net.Links {
		switch t := link.T.(type) {
		case *tensor.Dense:
			count(t.Data)
		case *tensor.CP:
			count(t.Weights)
		}
	}
	if total <= spanBits {
		return nil
	}
	return []string{fmt.Sprintf("%d factors and weights have entries that span 10^%.0f together, more than float64 holds: terms far below the largest may be missing from the total", wide, total*log10of2)}
}
