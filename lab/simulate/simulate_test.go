package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
)

// samples of the exponential distribution, at the middles of so many equal shares, scaled to their
// mean.
func samples(mean float64) []float64 {
	const n = 2000
	list, sum := make([]float64, n), 0.0
	for i := range list {
		list[i] = -math.Log(1 - (float64(i)+0.5)/n)
		sum += list[i]
	}
	for i := range list {
		list[i] *= mean * n / sum
	}
	return list
}

// only contraction takes time.
func only() *Measured {
	return &Measured{
		Reparam:   []float64{0},
		Learn:     []float64{0},
		Contract:  samples(1),
		Aggregate: []float64{0},
		Chunks:    []int{1},
	}
}

func stream(t *testing.T, m *Measured, c Config) *Result {
	t.Helper()
	r, err := Stream(t.Context(), m, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// With contraction alone the pipeline is M/M/c, in milliseconds.
func TestContractAloneIsMMc(t *testing.T) {
	for _, w := range []int{1, 5} {
		a := 0.8 * float64(w)
		r := stream(t, only(), Config{Workers: w, Rate: 1000 * a, Jobs: 60_000})
		near(t, "mean", r.Mean, 1+erlangC(w, a)/(float64(w)-a), 2*sampled)
		near(t, "throughput", r.Throughput, 1000*a, sampled)
		for _, u := range r.Use {
			if u.Name == "contract-worker" {
				near(t, "utilisation", u.Utilisation, 0.8, sampled)
				near(t, "limit", u.Limit, 1000*float64(w), sampled)
			}
		}
		if b := r.Bottlenecks(); b[0].Name != "contract-worker" {
			t.Errorf("bottlenecks %+v", b)
		}
	}
	// M/M/1: quantile p of the sojourn is −ln(1−p)/(μ−λ)
	if r := stream(t, only(), Config{Rate: 500, Jobs: 60_000}); true {
		near(t, "p50", r.P50, math.Ln2/0.5, 2*sampled)
		near(t, "p99", r.P99, math.Log(100)/0.5, 3*sampled)
	}
}

// Single jobs spend the computed time, and the hops and messages on their way, and wait for nothing.
func TestQuietLatency(t *testing.T) {
	m := &Measured{
		Reparam:     []float64{1},
		Learn:       []float64{2},
		Contract:    []float64{3},
		Aggregate:   []float64{4},
		Chunks:      []int{1},
		Hop:         0.1,
		Message:     0.02,
		ServerShare: 0.5,
		Publisher:   0.3,
	}
	// Until the output of a stage is stored it has fetched its message and made all its trips but
	// the acknowledgement.
	trips := float64(tripsOf(1).all())
	want := 10 + 0.3 + trips*(2*0.1+0.02) + 2*(0.1+0.01) // submission, answer
	r := stream(t, m, Config{Outstanding: 1, Jobs: 100})
	if math.Abs(r.P50-want) > 1e-9 || math.Abs(r.P99-want) > 1e-9 {
		t.Errorf("latency %v to %v, want %v", r.P50, r.P99, want)
	}
}

// The processor time of a job is its stages' and its messages'.
func TestCoresAreCharged(t *testing.T) {
	for _, chunks := range []int{1, 2, 20} {
		m := &Measured{
			Reparam:     []float64{1},
			Learn:       []float64{2},
			Contract:    []float64{3},
			Aggregate:   []float64{4},
			Chunks:      []int{chunks},
			Hop:         0.1,
			Message:     0.02,
			ServerShare: 0.5,
			Publisher:   0.3,
		}
		r := stream(t, m, Config{Outstanding: 1, Jobs: 400, Cores: 2, Shared: true, Workers: 2})
		want := 7.3 + 3*float64(chunks) + 0.02*MessagesPerJob(chunks)
		for _, u := range r.Use {
			if u.Name == "cores" {
				near(t, "processor time", u.PerJob, want, 0.02)
			}
		}
	}
}

// Closed loops reach the bound of the bottleneck: places over holding time (Denning and Buzen).
func TestSaturation(t *testing.T) {
	m := only()
	m.Learn = []float64{0.5}
	near(t, "contract", stream(t, m, Config{Workers: 3, Outstanding: 100, Jobs: 20_000}).Throughput, 3000, sampled)
	near(t, "learn", stream(t, m, Config{
		Workers:     100,
		Learn:       2,
		Outstanding: 400,
		Jobs:        20_000,
	}).Throughput, 4000, sampled)
	near(t, "cores", stream(t, m, Config{
		Workers:     100,
		Cores:       2,
		Shared:      true,
		Outstanding: 400,
		Jobs:        20_000,
	}).Throughput, 2000/1.5, sampled)
	b := stream(t, m, Config{Workers: 100, Learn: 2, Outstanding: 1, Jobs: 5000}).Bottlenecks()
	if b[0].Name != "learn-worker" || b[1].Name != "contract-worker" {
		t.Errorf("bottlenecks %+v", b)
	}
	near(t, "bound of learn", b[0].Limit, 4000, 1e-9)
	near(t, "bound of contract", b[1].Limit, 100_000, sampled)
}

// 64 components of 300 ms each need 64/w rounds.
func TestMakespan(t *testing.T) {
	m := &Measured{
		Reparam:   []float64{1},
		Learn:     []float64{2},
		Contract:  []float64{300},
		Aggregate: []float64{4},
		Chunks:    []int{1},
	}
	for w, rounds := range map[int]float64{1: 64, 2: 32, 10: 7, 100: 1} {
		got, err := Makespan(m, Config{Workers: w}, 64)
		if want := 7 + 300*rounds; err != nil || math.Abs(got-want) > 1e-6 {
			t.Errorf("%d workers: %v ms (%v), want %v", w, got, err, want)
		}
	}
	m.Hop, m.Message, m.ServerShare = 1, 0.1, 0.5
	slow, err := Makespan(m, Config{Workers: 64}, 64)
	if err != nil || slow < 307 || slow > 400 {
		t.Errorf("with hops: %v %v", slow, err)
	}
	// Chunks that one worker has fetched ahead are closed to others: of four chunks one takes three.
	m = &Measured{
		Reparam:   []float64{0},
		Learn:     []float64{0},
		Contract:  []float64{100},
		Aggregate: []float64{0},
		Chunks:    []int{1},
	}
	even, _ := Makespan(m, Config{Workers: 2}, 4)
	if even != 200 {
		t.Errorf("two workers, four chunks: %v ms", even)
	}
}

// Fetching ahead hides the fetch; messages in the buffer of a busy worker take longer.
func TestPrefetch(t *testing.T) {
	m := &Measured{
		Reparam:   []float64{0},
		Learn:     []float64{0},
		Contract:  []float64{1},
		Aggregate: []float64{0},
		Chunks:    []int{1},
		Hop:       0.5,
	}
	one := stream(t, m, Config{
		Prefetch:    1,
		Reparam:     1000,
		Learn:       1000,
		Aggregate:   1000,
		Outstanding: 100,
		Jobs:        5000,
	}).Throughput
	ahead := stream(t, m, Config{
		Prefetch:    16,
		Reparam:     1000,
		Learn:       1000,
		Aggregate:   1000,
		Outstanding: 100,
		Jobs:        5000,
	}).Throughput
	near(t, "one at a time", one, 1000/(1+1+float64(tripsOf(1).contract)), sampled)
	near(t, "ahead", ahead, 1000/(1+float64(tripsOf(1).contract)), sampled)

	m = only()
	m.Contract = append(make([]float64, 99), 100) // one of a hundred takes 100 ms, the others nothing
	c := Config{Workers: 8, Rate: 2000, Jobs: 20_000}
	fair := stream(t, m, c)
	c.Prefetch = 64
	if unfair := stream(t, m, c); unfair.Mean < 2*fair.Mean {
		t.Errorf("mean %v ms with prefetch 64, %v with 1", unfair.Mean, fair.Mean)
	}
}

func TestSameSeedSameResult(t *testing.T) {
	m := only()
	m.Hop, m.Message, m.ServerShare, m.Chunks = 0.1, 0.02, 0.5, []int{1, 2, 7}
	c := Config{Workers: 4, Cores: 2, Rate: 400, Jobs: 2000, Seed: 5}
	a, b := stream(t, m, c), stream(t, m, c)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave another result")
	}
	c.Seed++
	if reflect.DeepEqual(a, stream(t, m, c)) {
		t.Error("another seed gave the same result")
	}
}

func TestBadInput(t *testing.T) {
	good := Config{Rate: 1, Jobs: 10}
	for want, f := range map[string]func(*Measured, *Config){
		"contract_ms is empty": func(m *Measured, _ *Config) { m.Contract = nil },
		"learn_ms has -1":      func(m *Measured, _ *Config) { m.Learn = []float64{-1} },
		"hop_ms has NaN":       func(m *Measured, _ *Config) { m.Hop = math.NaN() },
		"chunks has 0":         func(m *Measured, _ *Config) { m.Chunks = []int{0} },
		"at most 1":            func(m *Measured, _ *Config) { m.ServerShare = 2 },
		"exactly one":          func(_ *Measured, c *Config) { c.Outstanding = 1 },
		"workers is -1":        func(_ *Measured, c *Config) { c.Workers = -1 },
		"jobs":                 func(_ *Measured, c *Config) { c.Jobs = -1 },
	} {
		m, c := only(), good
		f(m, &c)
		if _, err := Stream(t.Context(), m, c); fault.CodeOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Stream(ended, only(), Config{Rate: 1, Jobs: 1_000_000}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	b, err := json.Marshal(only())
	if err != nil {
		t.Fatal(err)
	}
	if m, err := ReadMeasured(bytes.NewReader(b)); err != nil || !reflect.DeepEqual(m, only()) {
		t.Errorf("read again: %v", err)
	}
	for _, text := range []string{"", "{}", `{"reparam_ms":[1],"more":1}`} {
		if _, err := ReadMeasured(strings.NewReader(text)); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}
