// Package message has what only workers send each other: the messages from stage to stage, the blobs they keep, the subjects they
// serve, and the checks of a job against its network. Any release may change them. What clients send and hear is in pkg/wire.
package message

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// MaxBlob bounds the bytes of a network, a decomposition or a job.
const MaxBlob = codec.MaxBytes

// maxChunks bounds the chunks of one job.
const maxChunks = 1 << 20

// ErrInvalid: the message is well formed, but what it says is wrong.
var ErrInvalid = codec.ErrInvalid

// What messages of workers have in common with those of clients.
type (
	Tensor = form.Tensor
	Levels = form.Levels
	Scaled = form.Scaled
)

// Short names of the checks that every message and blob makes.
var (
	invalid        = codec.Invalid
	under          = codec.Under
	blame          = codec.Blame
	unmarshal      = codec.Unmarshal
	newTensor      = form.NewTensor
	newLevels      = form.NewLevels
	newScaled      = form.NewScaled
	product        = form.Product
	isToken        = form.IsToken
	finite         = form.Finite
	checkJob       = form.CheckJob
	checkRequest   = form.CheckRequest
	checkDigest    = form.CheckDigest
	checkTimes     = form.CheckTimes
	checkSettings  = form.CheckSettings
	checkErrorInfo = form.CheckErrorInfo
	checkNumber    = form.CheckNumber
)

// encodeBlob returns the bytes of a blob, if a reader will take as many.
func encodeBlob(name string, v any) ([]byte, error) {
	b, err := codec.Marshal(name, v, false)
	if err == nil && len(b) > MaxBlob {
		return nil, fault.Wrap(fault.OverBudget, under(name, fmt.Errorf("%w: %d bytes, at most %d", codec.ErrTooLarge, len(b), MaxBlob)))
	}
	return b, err
}

func checkChunk(k, n int) error {
	switch {
	case n < 1 || n > maxChunks:
		return invalid("n", "%d chunks, from 1 to %d", n, maxChunks)
	case k < 0 || k >= n:
		return invalid("k", "chunk %d of %d", k, n)
	}
	return nil
}

func checkUnit(u btn.Unit) error {
	switch {
	case u.Query < 0:
		return invalid("q", "query %d", u.Query)
	case u.Part < 0:
		return invalid("c", "component %d", u.Part)
	}
	return nil
}

func checkValue(v btn.UnitValue) error {
	if err := checkUnit(v.Unit); err != nil {
		return err
	}
	if v.Error != nil {
		return under("x", checkErrorInfo(v.Error))
	}
	if err := checkNumber(v.Value.Z); err != nil {
		return under("v", under("z", err))
	}
	if !finite(v.Value.Flops) || v.Value.Flops < 0 {
		return invalid("v.f", "%v flops", v.Value.Flops)
	}
	if !finite(v.Value.Digits) || v.Value.Digits < 0 {
		return invalid("v.g", "%v digits", v.Value.Digits)
	}
	if t := v.Value.Truncation; t != nil && !(finite(t.Discarded) && finite(t.Bytes)) {
		return invalid("v.t", "discarded %v, %v bytes", t.Discarded, t.Bytes)
	}
	if r := v.Value.Region; r != nil {
		if !finite(r.LnBethe) || !finite(r.LnSum) || !finite(r.Widest) {
			return invalid("v.r", "ln Z_BP %v, sum %v", r.LnBethe, r.LnSum)
		}
		return under("v.r.l", checkNumber(r.Linear))
	}
	return nil
}

// NearestJob returns an id that is one for a text that may be none: its first 64 bytes, with _ in the place of what no id has.
func NearestJob(text string) string {
	b := []byte(text[:min(len(text), form.MaxToken)])
	for i := range b {
		if !isToken(string(b[i])) {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b)
}

// checkQueries checks the queries of a message after reparam-worker, which has turned evidence as text into lists.
func checkQueries(queries []query.Query) error {
	for i := range queries {
		if queries[i].Evid != "" {
			return under(fmt.Sprintf("queries[%d]", i), invalid("evid", "evidence as text after reparam-worker"))
		}
	}
	return form.CheckQueries(nil, false, queries)
}

// checkOver checks what assignment i of so many is asked over.
func checkOver(over, i, assignments int) error {
	if err := query.CheckOver(over, i, assignments); err != nil {
		return invalid("over", "%v", err)
	}
	return nil
}

// checkJoint checks the variables of a joint marginal against the domains.
func checkJoint(set, domains []int) error {
	if err := query.CheckJoint(domains, set); err != nil {
		return invalid("joint", "%v", err)
	}
	return nil
}
