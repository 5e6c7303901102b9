package wire

// Names of what requests and answers are made of.

import (
	"github.com/basetensor/basetensor/internal/btn"
)

type (
	// Settings decide by which method a request is answered, and within which budgets. The zero value of a field means its default.
	Settings = btn.Settings
	// Result is the answer to one query: ln Z in nats, how it was obtained, and how far to trust it.
	Result = btn.Result
)
