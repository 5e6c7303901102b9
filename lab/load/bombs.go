package load

// Cost bombs: jobs of one tenant that take far more than they look, beside the small jobs of
// another.

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Bomb is a kind of cost bomb. Its load has no tenant, duration or prefix yet.
type Bomb struct {
	Name string
	Load Config
}

// Bombs returns one of every kind.
func Bombs(seed uint64) ([]Bomb, error) {
	alarm := AlarmSized(seed)
	deep, err := generate.RandomRegular(110, 3, generate.Ising{Delta: 1, Seed: seed})
	if err != nil {
		return nil, err
	}
	wide, err := generate.Complete(60, generate.Ising{Delta: 1, Seed: seed})
	if err != nil {
		return nil, err
	}
	grid, err := generate.Grid(60, 60, generate.Ising{Delta: 1, Seed: seed})
	if err != nil {
		return nil, err
	}
	loops, err := generate.RandomRegular(400, 4, generate.Ising{Delta: 1, Seed: seed})
	if err != nil {
		return nil, err
	}

	one := func(name string, m *factorgraph.Model, variants, batch, outstanding int, s query.Settings) Bomb {
		return Bomb{name, Config{
			Models: []Model{{name, m, 1}}, Variants: variants, Batch: batch, Outstanding: outstanding,
			Observed: 5, Settings: s, Seed: seed, Verify: 0,
		}}
	}
	bombs := []Bomb{
		one("queries", alarm, 4, 20_000, 4, query.Settings{}),
		one("components", alarm, 4, 2_000, 4, query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 64, Budget: 1e10,
		}),
		one("contraction", deep, 8, 1, 8, query.Settings{Method: query.MethodExact}),
		one("learning", wide, 100, 1, 8, query.Settings{
			Method: query.MethodSymmetryCP, Components: 16, Maps: query.MapLearned, Budget: 5e13,
		}),
		one("payload", large(19), 100, 1, 0, query.Settings{}),
		one("thousand", alarm, 100_000, 1, 1000, query.Settings{}),
		one("truncated", grid, 8, 1, 8, query.Settings{Method: query.MethodTruncated, Budget: 1e13}),
		one("regions", loops, 8, 1, 8, query.Settings{Method: query.MethodRegions, Budget: 1e13}),
	}
	bombs[2].Load.Marginals = true
	bombs[4].Load.Rate = 1
	for i := range bombs {
		bombs[i].Load.Zipf = 0
	}
	return bombs, nil
}

// large is one table over so many binary variables: 4 MiB of them at 19.
func large(n int) *factorgraph.Model {
	m := &factorgraph.Model{}
	f := factorgraph.Factor{}
	t := &tensor.Dense{Data: make([]float64, 1<<n)}
	for v := range n {
		m.Domains = append(m.Domains, 2)
		f.Scope = append(f.Scope, v)
		t.Shape = append(t.Shape, 2)
	}
	for i := range t.Data {
		t.Data[i] = 1 + float64(i%7)
	}
	f.Table = t
	m.Factors = []factorgraph.Factor{f}
	return m
}

// TenantOf returns the name of a tenant beside another: of the same lane, or of a different one.
func TenantOf(other string, same bool) string {
	for k := 0; ; k++ {
		name := "bomber" + strconv.Itoa(k)
		if (wire.Lane(name) == wire.Lane(other)) == same {
			return name
		}
	}
}

// Waiting is a client that waits for its own jobs, one by one, and so receives nobody else's answers.
type Waiting struct {
	*client.Client
	mu   sync.Mutex
	ctx  context.Context
	told func(job string, a *wire.Answer, err error)
}

// Results calls f with the answers of jobs that are submitted from now on.
func (w *Waiting) Results(
	ctx context.Context, _ func(job string) bool, f func(job string, a *wire.Answer, err error),
) (stop func(), err error) {
	ctx, stop = context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.told = ctx, f
	return stop, nil
}

// Submit stores a job and begins to wait for it.
func (w *Waiting) Submit(ctx context.Context, m wire.Request) (digest string, err error) {
	if digest, err = w.Client.Submit(ctx, m); err != nil {
		return digest, err
	}
	w.mu.Lock()
	until := w.ctx
	w.mu.Unlock()
	go func() {
		a, err := w.Client.Wait(until, m.Job)
		if until.Err() != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told(m.Job, a, err)
	}()
	return digest, nil
}

// Canceller ends jobs nobody waits for; *client.Client is one.
type Canceller interface {
	Target
	Cancel(ctx context.Context, job, reason string) error
}

// Beside runs one load, and another over a connection of its own that begins with it and ends with it: jobs of the
// other that have no answer then are cancelled.
func Beside(ctx context.Context, c, other Config, target Target, others Canceller) (mine, theirs *Report, err error) {
	other.WarmUp, other.Duration, other.Drain = c.WarmUp, c.Duration, 1
	var theirErr error
	var wait sync.WaitGroup
	var out *Outcome
	wait.Go(func() { out, theirErr = Run(ctx, other, others) })
	o, err := Run(ctx, c, target)
	wait.Wait()
	if err != nil {
		return nil, nil, err
	}
	if theirErr != nil {
		return nil, nil, theirErr
	}
	if err := out.cancel(ctx, others); err != nil {
		return nil, nil, err
	}
	return o.Report(), out.Report(), nil
}

// cancel ends the jobs that are under way.
func (o *Outcome) cancel(ctx context.Context, target Canceller) error {
	for n, rec := range o.records {
		if rec.state != underWay {
			continue
		}
		err := target.Cancel(ctx, o.config.Prefix+"-"+strconv.Itoa(n), "the run is over")
		if err != nil && fault.CodeOf(err) != fault.BadInput {
			return fmt.Errorf("load: cancel: %w", err)
		}
	}
	return nil
}
