package load

// The jobs: their sequence, drawn from the seed.

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// job is one that is to be asked.
type job struct {
	number  int
	at      time.Duration // intended arrival after the start of the run; 0 in a closed loop
	model   int           // in the mix
	variant int
	tenant  int
	message wire.Request
}

// planner draws jobs one after the other.
type planner struct {
	c        Config
	r        *rand.Rand
	library  library
	models   chooser
	variants chooser
	tenants  chooser
	register func(*wire.Graph) (digest string, err error) // nil: jobs carry their models
	next     int
	clock    time.Duration
}

func newPlanner(c Config) *planner {
	p := &planner{
		c:       c,
		r:       rand.New(rand.NewPCG(c.Seed, 0x6c6f6164)),
		library: library{config: c, have: map[[2]int]*known{}},
	}
	p.models = newChooser(len(c.Models), func(i int) float64 { return c.Models[i].Weight })
	p.variants = newChooser(c.Variants, func(k int) float64 { return math.Pow(float64(k+1), -c.Zipf) })
	p.tenants = newChooser(len(c.Tenants), func(i int) float64 { return c.Tenants[i].Weight })
	return p
}

// job draws the next job. Arrivals are a Poisson process: the times between them are exponential
// with mean 1/Rate.
func (p *planner) job() (*job, error) {
	j := &job{
		number:  p.next,
		model:   p.models.choose(p.r),
		variant: p.variants.choose(p.r),
		tenant:  p.tenants.choose(p.r),
	}
	if p.c.Rate > 0 {
		p.clock += time.Duration(p.r.ExpFloat64() / p.c.Rate * float64(time.Second))
		j.at = p.clock
	}
	k, err := p.library.get(j.model, j.variant)
	if err != nil {
		return nil, err
	}

	source := wire.Request{Model: k.body}
	if p.register != nil {
		if k.digest == "" {
			if k.digest, err = p.register(&wire.Graph{Model: k.body}); err != nil {
				return nil, err
			}
		}
		source = wire.Request{ModelDigest: k.digest}
	}

	queries := make([]query.Query, p.c.Batch)
	for q := range queries {
		queries[q] = query.Query{Evidence: k.draw.evidence(p.r, p.c.Observed), Marginals: p.c.Marginals}
	}
	j.message = wire.Request{
		Job: p.c.Prefix + "-" + strconv.Itoa(p.next), Tenant: p.c.Tenants[j.tenant].Name, Model: source.Model,
		ModelDigest: source.ModelDigest,
		Queries:     queries, Settings: p.c.Settings,
		DeadlineMS: int64((p.c.Deadline + time.Millisecond - 1) / time.Millisecond),
	}
	p.next++
	return j, nil
}

// chooser draws positions in proportion to weights.
type chooser []float64 // cumulative

func newChooser(n int, weight func(int) float64) chooser {
	c, sum := make(chooser, n), 0.0
	for i := range c {
		sum += weight(i)
		c[i] = sum
	}
	return c
}

func (c chooser) choose(r *rand.Rand) int {
	if len(c) == 1 {
		return 0
	}
	u := r.Float64() * c[len(c)-1]
	return min(sort.Search(len(c), func(i int) bool { return c[i] > u }), len(c)-1)
}
