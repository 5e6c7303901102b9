package message

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Network goes from reparam-worker to learn-worker. It names the base tensor network by the digest
// of its blob, and has the queries.
type Network struct {
	Job      string         `msgpack:"job"`
	Tenant   string         `msgpack:"tenant,omitempty"`
	Digest   string         `msgpack:"digest"` // of the request
	Blob     string         `msgpack:"blob"`   // of the stored network
	Queries  []query.Query  `msgpack:"queries"`
	Names    []byte         `msgpack:"names,omitempty"` // EncodeNames of the model's, where the answer has them
	Settings query.Settings `msgpack:"settings,omitempty"`
	// The model is registered: more queries of it will come.
	Registered bool `msgpack:"registered,omitempty"`
	// What is remembered of the job is remembered for its tenant alone.
	OwnCache bool `msgpack:"own_cache,omitempty"`
	// when the model was stored, Unix milliseconds
	Stored     int64              `msgpack:"stored"`
	DeadlineMS int64              `msgpack:"deadline_ms,omitempty"` // after Stored, 0: none
	Timings    map[string]float64 `msgpack:"timings,omitempty"`     // milliseconds by stage
}

// Task goes from learn-worker to a contract-worker: chunk K of N of the job's units, 0 ≤ K < N.
type Task struct {
	Job         string `msgpack:"job"`
	Tenant      string `msgpack:"tenant,omitempty"`
	Digest      string `msgpack:"digest"`       // of the request
	NetworkBlob string `msgpack:"network_blob"` // digest of the stored network
	// Digest of the encoded assignments, which are stored unless they are in Plan.
	JobBlob string `msgpack:"job_blob"`
	// The encoded assignments of a job of one chunk, if they are small.
	Plan  []byte     `msgpack:"plan,omitempty"`
	K     int        `msgpack:"k"`
	N     int        `msgpack:"n"`
	Units []btn.Unit `msgpack:"units"`
	// The job's demands from First on, as far as the units name them; others may be empty.
	Demands []btn.Demand `msgpack:"demands"`
	// Position in the job of the first of Demands.
	First  int     `msgpack:"first,omitempty"`
	Names  []byte  `msgpack:"names,omitempty"`  // only of the first chunk: as in the network
	Memory int64   `msgpack:"memory,omitempty"` // bytes for tables
	Cost   float64 `msgpack:"cost,omitempty"`   // expected flops
	// As in the network.
	OwnCache bool `msgpack:"own_cache,omitempty"`
	// The numeric kind whose workers compute the job's tasks while there are any; empty: they agree.
	NumericKind string `msgpack:"kind,omitempty"`
	// Numbers of first chunks with which the job may be answered, ascending.
	Ends       []int              `msgpack:"ends,omitempty"`
	Stored     int64              `msgpack:"stored"`
	DeadlineMS int64              `msgpack:"deadline_ms,omitempty"`
	Timings    map[string]float64 `msgpack:"timings,omitempty"`
}

// Partial goes from a contract-worker to the aggregator: the values of chunk K of N.
type Partial struct {
	Job         string          `msgpack:"job"`
	Tenant      string          `msgpack:"tenant,omitempty"`
	Digest      string          `msgpack:"digest"`
	JobBlob     string          `msgpack:"job_blob"`
	Plan        []byte          `msgpack:"plan,omitempty"` // as in the task
	K           int             `msgpack:"k"`
	N           int             `msgpack:"n"`
	Values      []btn.UnitValue `msgpack:"values"`
	NumericKind string          `msgpack:"kind"`            // of the worker, see NumericKind
	Names       []byte          `msgpack:"names,omitempty"` // as in the task
	// As in the task.
	Ends    []int              `msgpack:"ends,omitempty"`
	Stored  int64              `msgpack:"stored,omitempty"`
	Timings map[string]float64 `msgpack:"timings,omitempty"`

	// Header and Sequence are those of the message, where it was read from its stream.
	Header   map[string][]string `msgpack:"-"`
	Sequence uint64              `msgpack:"-"`
}

// Name returns "network".
func (*Network) Name() string { return "network" }

// Name returns "task".
func (*Task) Name() string { return "task" }

// Name returns "partial".
func (*Partial) Name() string { return "partial" }

// Request returns the digest of the request.
func (m *Network) Request() string { return m.Digest }

// Request returns the digest of the request.
func (m *Task) Request() string { return m.Digest }

// Request returns the digest of the request.
func (m *Partial) Request() string { return m.Digest }

// Validate checks ids, digests, evidence and times.
func (m *Network) Validate() error {
	if err := checkRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	if err := checkDigest("blob", m.Blob); err != nil {
		return err
	}

	if len(m.Queries) == 0 {
		return invalid("queries", "there is none")
	}

	if err := checkQueries(m.Queries); err != nil {
		return err
	}

	if err := checkSettings(m.Settings); err != nil {
		return err
	}
	return checkTimes(m.Stored, m.DeadlineMS, m.Timings)
}

// Validate checks ids, digests, that 0 ≤ K < N, evidence and times. Every unit of work (one part of the plan for one
// demand) has to name a demand of the task, which has demands First, First+1, ….
func (m *Task) Validate() error {
	if err := checkRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	if err := checkDigest("network_blob", m.NetworkBlob); err != nil {
		return err
	}
	if err := checkDigest("job_blob", m.JobBlob); err != nil {
		return err
	}
	if err := checkChunk(m.K, m.N); err != nil {
		return err
	}

	for i, u := range m.Units {
		if err := checkUnit(u); err != nil {
			return under(fmt.Sprintf("units[%d]", i), err)
		}
		if u.Query < m.First || u.Query-m.First >= len(m.Demands) {
			return invalid(
				fmt.Sprintf("units[%d].q", i), "demand %d, the task has %d from %d", u.Query,
				len(m.Demands), m.First,
			)
		}
	}

	if err := checkDemands(m.Demands); err != nil {
		return err
	}

	if err := checkEnds(m.Ends, m.N); err != nil {
		return err
	}

	switch {
	case m.NumericKind != "" && !isToken(m.NumericKind):
		return invalid("kind", "%q is no numeric kind", m.NumericKind)
	case m.First < 0:
		return invalid("first", "query %d", m.First)
	case m.Memory < 0:
		return invalid("memory", "%d bytes", m.Memory)
	case !finite(m.Cost) || m.Cost < 0:
		return invalid("cost", "%v flops", m.Cost)
	}
	return checkTimes(m.Stored, m.DeadlineMS, m.Timings)
}

// Validate checks ids, digests, that 0 ≤ K < N, and that every value without an error is a finite,
// normalised number.
func (m *Partial) Validate() error {
	if err := checkRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	if err := checkDigest("job_blob", m.JobBlob); err != nil {
		return err
	}
	if err := checkChunk(m.K, m.N); err != nil {
		return err
	}

	if !isToken(m.NumericKind) {
		return invalid("kind", "%q is no numeric kind", m.NumericKind)
	}

	if err := checkEnds(m.Ends, m.N); err != nil {
		return err
	}

	for i, v := range m.Values {
		if err := checkValue(v); err != nil {
			return under(fmt.Sprintf("values[%d]", i), err)
		}
	}

	return checkTimes(m.Stored, 0, m.Timings) // 0: it has no deadline
}

// checkEnds checks that ends is ascending, from 1 to n. A job of n chunks may be answered with its first end chunks,
// for each end.
func checkEnds(ends []int, n int) error {
	for i, end := range ends {
		if end < 1 || end > n || i > 0 && end <= ends[i-1] {
			return invalid("ends", "%d of %d chunks, in ascending order", end, n)
		}
	}
	return nil
}
