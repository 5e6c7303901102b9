package circuit

import (
	"context"
	"errors"
	"sync"
)

// Circuits as bytes.

// Compiled is a circuit, as it was compiled from a network. It does not change.
type Compiled struct {
	// Form is the circuit in the bytes of Circuit.Append. Its first variables are the network's, in order. Further variables are auxiliary.
	Form []byte `msgpack:"circuit"`
	// Functional reports whether the network's variables determine the auxiliary ones wherever the product is not 0, which maxima need.
	Functional bool `msgpack:"functional,omitempty"`
	// Parametric reports whether the numbers of the network's cores are weights, too: those of the variables after the network's
	// (logic.CompileParameters).
	Parametric bool `msgpack:"parametric,omitempty"`

	mutex     sync.Mutex
	isDecoded bool // circuit and err are the result of decoding Form
	circuit   *Circuit
	err       error
}

// NewCompiled returns the compiled form of a circuit. isFunctional becomes Compiled.Functional.
func NewCompiled(c *Circuit, isFunctional bool) *Compiled {
	return &Compiled{Form: c.Append(nil), Functional: isFunctional, circuit: c, isDecoded: true}
}

// Circuit returns the circuit that c.Form encodes. The first call decodes it, and later calls return the same circuit or error. Errors wrap
// ErrCircuit, or are the context's; after an error of the context the next call tries again.
func (c *Compiled) Circuit(ctx context.Context) (*Circuit, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isDecoded {
		return c.circuit, c.err
	}
	decoded, err := Decode(ctx, c.Form)
	if err != nil && !errors.Is(err, ErrCircuit) { // the context's
		return nil, err
	}
	c.circuit, c.err, c.isDecoded = decoded, err, true
	return decoded, err
}
