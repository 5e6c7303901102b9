package simulate

import (
	"context"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Config is a deployment and its load.
type Config struct {
	Workers   int  // contract workers, each on one core; default 1
	Prefetch  int  // messages that a contract worker has in hand, default 1: the one it works on
	Reparam   int  // messages worked on at a time, default 4
	Learn     int  // likewise
	Aggregate int  // likewise
	Server    int  // messages that the server handles at a time, default 2
	Cores     int  // of the machine of the server and the other stages, 0: as many as they can use
	Shared    bool // contract workers compute on those cores too, as on the embedded stack

	Rate        float64 // jobs per second, Poisson arrivals
	Outstanding int     // jobs under way, closed loop; exactly one of Rate and Outstanding is given
	Jobs        int     // counted, default 10000
	WarmUp      int     // jobs before those, default a tenth
	Seed        uint64
}

// limits of a simulation: an event takes about half a microsecond, a job some forty of them and some
// twenty per chunk.
const (
	maxPlaces = 1_000_000
	maxJobs   = 10_000_000
)

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value *int
		def   int
	}{{&c.Workers, 1}, {&c.Prefetch, 1}, {&c.Reparam, 4}, {&c.Learn, 4}, {&c.Aggregate, 4}, {&c.Server, 2},
		{&c.Jobs, 10_000}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if c.WarmUp == 0 {
		c.WarmUp = c.Jobs / 10
	}
	return c
}

func (c Config) check() error {
	for name, n := range map[string]int{
		"workers":   c.Workers,
		"prefetch":  c.Prefetch,
		"reparam":   c.Reparam,
		"learn":     c.Learn,
		"aggregate": c.Aggregate,
		"server":    c.Server,
		"cores":     c.Cores,
	} {
		if n < 0 || n > maxPlaces {
			return fault.New(fault.BadInput, "simulate: %s is %d, at most %d are possible", name, n, maxPlaces)
		}
	}

	switch {
	case (c.Rate > 0) == (c.Outstanding > 0) || c.Rate < 0 || c.Outstanding < 0 || math.IsNaN(c.Rate) ||
		math.IsInf(c.Rate, 1):
		return fault.New(fault.BadInput,
			"simulate: rate %v and %d jobs outstanding: exactly one of them must be above 0",
			c.Rate, c.Outstanding)
	case c.Jobs < 1 || c.WarmUp < 0 || c.Jobs > maxJobs || c.WarmUp > maxJobs || c.Outstanding > maxJobs:
		return fault.New(fault.BadInput, "simulate: %d jobs after %d, %d outstanding: at most %d are possible",
			c.Jobs, c.WarmUp, c.Outstanding, maxJobs)
	}

	return nil
}

// Result of a simulation. Times are milliseconds.
type Result struct {
	Workers    int     `json:"workers"`
	Throughput float64 `json:"jobs_per_s"`
	Mean       float64 `json:"mean_ms"` // of the latency
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Use        []Use   `json:"use"`
}

// Use of a resource.
type Use struct {
	Name        string  `json:"name"`
	Places      int     `json:"places"` // 0: no bound
	Utilisation float64 `json:"utilisation"`
	Queue       float64 `json:"queue"`       // waiting entries, on average
	PerJob      float64 `json:"ms_per_job"`  // time that a job holds a place
	Limit       float64 `json:"limit_per_s"` // jobs per second that it allows, 0: no bound
}

// Bottlenecks are the bounded resources in the order of the throughput that they allow, the least
// first.
func (r *Result) Bottlenecks() []Use {
	var list []Use
	for _, u := range r.Use {
		if u.Limit > 0 {
			list = append(list, u)
		}
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].Limit < list[b].Limit })
	return list
}

// Stream simulates a stream of jobs. Beyond the capacity of the deployment, latencies of an open loop grow with the
// number of jobs.
func Stream(ctx context.Context, m *Measured, c Config) (*Result, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}

	p := newPipeline(m, c)
	arrivals := rand.New(rand.NewPCG(c.Seed, 0x61727269))
	var latencies []float64
	begun, ended, from := 0, 0, 0.0
	var begin func()
	done := func(j *job) {
		if ended++; ended == c.WarmUp {
			from = p.now
			for _, r := range p.all {
				r.restart()
			}
		} else if ended > c.WarmUp {
			latencies = append(latencies, j.ended-j.began)
		}
		if c.Outstanding > 0 {
			begin()
		}
	}

	begin = func() {
		begun++
		p.start(p.newJob(), done)
	}
	if c.Outstanding > 0 {
		for range c.Outstanding {
			p.after(0, begin)
		}
	} else {
		var arrive func()
		arrive = func() {
			begin()
			p.after(arrivals.ExpFloat64()*1000/c.Rate, arrive)
		}
		p.after(0, arrive)
	}

	steps := 0
	p.run(func() bool {
		steps++
		return ended < c.WarmUp+c.Jobs && (steps%(1<<14) != 0 || ctx.Err() == nil)
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.result(latencies, p.now-from), nil
}

// result over so many milliseconds.
func (p *pipeline) result(latencies []float64, over float64) *Result {
	sort.Float64s(latencies)
	n := len(latencies)
	r := &Result{Workers: p.c.Workers, P50: latencies[(n-1)/2], P99: latencies[int(math.Ceil(0.99*float64(n)))-1]}
	for _, l := range latencies {
		r.Mean += l / float64(n)
	}

	if over > 0 {
		r.Throughput = 1000 * float64(n) / over
	}
	for _, s := range p.all {
		s.tally()
		u := Use{Name: s.name, Places: s.places, PerJob: s.busy / float64(n)}
		if over > 0 {
			u.Queue = s.queue / over
		}
		if s.places > 0 && over > 0 {
			u.Utilisation = s.busy / over / float64(s.places)
		}
		if s.places > 0 && u.PerJob > 0 {
			u.Limit = 1000 * float64(s.places) / u.PerJob
		}
		r.Use = append(r.Use, u)
	}

	return r
}

// Makespan simulates one job of so many chunks on an idle deployment and returns the time to its
// answer.
func Makespan(m *Measured, c Config, chunks int) (float64, error) {
	one := *m
	one.Chunks = []int{chunks}
	return timeAlone(&one, c, nil)
}

// timeAlone is the time to the answer of one job, whose chunks take these times; nil: times that were measured.
func timeAlone(m *Measured, c Config, chunks []float64) (float64, error) {
	c.Rate, c.Outstanding = 0, 1
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return 0, err
	}
	if err := m.check(); err != nil {
		return 0, err
	}
	p := newPipeline(m, c)
	j := p.newJob()
	if chunks != nil {
		j.chunks, j.left = chunks, len(chunks)
	}
	took, ended := 0.0, false
	p.start(j, func(j *job) { took, ended = j.ended-j.began, true })
	p.run(func() bool { return !ended })
	return took, nil
}
