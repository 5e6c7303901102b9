package btn

// The norm of the linked tensors, which the certificate multiplies.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// LnLinks returns ln(|Scale| · Π_j ‖L^(j)‖_F) in nats, the norm of all links, or −Inf if Scale or a link is zero. With ‖B−B̃‖ it bounds the
// error of an estimate by Cauchy–Schwarz: |Z − Z̃| ≤ ‖B−B̃‖ · |Scale| · Π_j ‖L^(j)‖. B is the product of the cores, the other tensors of
// the network, and B̃ its approximation. If the norm of a symmetric link is too expensive, and nothing is zero, it returns +Inf, which
// keeps that bound true. The error is the context's, which is checked before every link: a link of many small terms takes a tenth of a
// second.
func LnLinks(ctx context.Context, n *Network) (float64, error) {
	sum := n.Scale.LogAbs()
	isUnknown := false // the norm of some link is too expensive
	for _, link := range n.Links {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		squaredNorm, err := tensor.NormSq(link.T)
		if err != nil {
			isUnknown = true
			continue
		}
		sum += squaredNorm.LogAbs() / 2
	}

	if isUnknown && !math.IsInf(sum, -1) {
		return math.Inf(1), nil
	}
	return sum, nil
}
