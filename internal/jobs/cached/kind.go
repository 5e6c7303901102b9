package cached

import (
	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/queue/message"
)

// NumericKind identifies the arithmetic on which the last bits of this process's numbers depend: the processor's, and
// the order of summation of the loops in use (kernel.Order). The vector instructions are not part of it, because all
// loops of one order give the same bits.
func NumericKind() string { return message.NumericKind() + "-" + kernel.Order() }
