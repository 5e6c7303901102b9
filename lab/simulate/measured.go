package simulate

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Measured is the input of the model, the JSON of `btnlab load --record`. All times are milliseconds; lists are samples
// of a distribution, drawn from evenly.
type Measured struct {
	Reparam   []float64 `json:"reparam_ms"`   // per job
	Learn     []float64 `json:"learn_ms"`     // per job
	Contract  []float64 `json:"contract_ms"`  // per chunk
	Aggregate []float64 `json:"aggregate_ms"` // per job
	Chunks    []int     `json:"chunks"`       // per job

	Hop float64 `json:"hop_ms"` // a message's way to or from the server, one direction
	// processor time that a message takes beside the stages' work, at both ends together
	Message     float64 `json:"message_ms"`
	ServerShare float64 `json:"server_share"` // of that, the server's part
	// processor time of the load generator per job, 0 if it has a machine of its own
	Publisher float64 `json:"publisher_ms"`
	CPU       float64 `json:"cpu_ms_per_job"` // all of it, as measured; for the record
	Latency   float64 `json:"latency_p50_ms"` // likewise
	Rate      float64 `json:"measured_per_s"` // at which it was measured
}

// ReadMeasured reads and checks the JSON. Errors are bad input.
func ReadMeasured(r io.Reader) (*Measured, error) {
	var m Measured
	d := json.NewDecoder(io.LimitReader(r, 64<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fault.New(fault.BadInput, "simulate: measurements: %w", err)
	}
	return &m, m.check()
}

func (m *Measured) check() error {
	for _, list := range []struct {
		name  string
		times []float64
	}{
		{"reparam_ms", m.Reparam}, {"learn_ms", m.Learn}, {"contract_ms", m.Contract}, {"aggregate_ms", m.Aggregate},
		{"hop_ms", []float64{m.Hop}}, {"message_ms", []float64{m.Message}},
		{"server_share", []float64{m.ServerShare}}, {"publisher_ms", []float64{m.Publisher}},
	} {
		if len(list.times) == 0 {
			return fault.New(fault.BadInput, "simulate: %s is empty", list.name)
		}
		for _, t := range list.times {
			if !(t >= 0) || math.IsInf(t, 1) {
				return fault.New(fault.BadInput, "simulate: %s has %v", list.name, t)
			}
		}
	}

	if m.ServerShare > 1 {
		return fault.New(fault.BadInput, "simulate: server_share is %v, at most 1 is possible", m.ServerShare)
	}
	if len(m.Chunks) == 0 {
		return fault.New(fault.BadInput, "simulate: chunks is empty")
	}

	for _, n := range m.Chunks {
		if n < 1 || n > 1_000_000 {
			return fault.New(fault.BadInput, "simulate: chunks has %d", n)
		}
	}
	return nil
}

// draw takes one of the samples.
func draw[T any](r *rand.Rand, samples []T) T {
	if len(samples) == 1 {
		return samples[0]
	}
	return samples[r.IntN(len(samples))]
}

// Path counts the way between a job of one chunk and its answer beside the stages' own work, where nothing waits: the
// hops, and the messages with both ends on the way.
func Path() (hops, messages int) {
	trips := tripsOf(1).all()
	return 2*trips + 2, trips + 1 // submission and answer have one end each on the way
}
