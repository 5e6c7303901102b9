package simulate

// The pipeline: its stages, their requests to the server while they hold a message, and a job's way through them.

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/query"
)

// The requests that a stage makes to the server and waits for while it holds a message, beside fetching it and beside the
// time on its own clock (package pipeline's code). Every stage stores its output and
// acknowledges. For a job of several chunks, which is no longer new by then and whose plan does not
// travel with it, learn looks for the plan's blob and stores that, contract looks for an answer and
// for its output, and aggregate for an answer and for the plan.
const (
	tripsReparam  = 2
	fetchedAtOnce = 8 // partials that the aggregator reads at a time
)

// trips counts the requests of the stages after reparam.
type trips struct{ learn, contract, aggregate int }

func tripsOf(chunks int) trips {
	if chunks == 1 {
		return trips{2, 2, 2}
	}
	return trips{4, 4, 4}
}

// all is how often a job of one chunk asks the server.
func (t trips) all() int { return tripsReparam + t.learn + t.contract + t.aggregate }

// MessagesPerJob is the number of messages that the server handles for a job of so many chunks: a request and its reply
// are one, a fetch with its message is one, submission and the answer to the client are two.
func MessagesPerJob(chunks int) float64 {
	n, t := float64(chunks), tripsOf(chunks)
	common := float64(2 + (1 + tripsReparam) + (1 + t.learn) + (1+t.contract)*chunks)
	if chunks == 1 {
		return common + float64(1+t.aggregate)
	}
	// further tasks; partials fetched, read, and acknowledged
	return common + (n - 1) + n + float64(t.aggregate) + n + n - 1
}

// pipeline is the whole model.
type pipeline struct {
	engine
	m        *Measured
	c        Config
	r        *rand.Rand
	server   *resource
	cores    *resource // of the machine that server and stages share; contract workers too, if so configured
	reparam  *resource
	learn    *resource
	contract *pool
	sum      *resource
	all      []*resource
}

func newPipeline(m *Measured, c Config) *pipeline {
	p := &pipeline{m: m, c: c, r: rand.New(rand.NewPCG(c.Seed, 0x73696d))}
	add := func(name string, places int) *resource {
		r := &resource{e: &p.engine, name: name, places: places}
		p.all = append(p.all, r)
		return r
	}
	p.reparam, p.learn = add(query.StageReparam, c.Reparam), add(query.StageLearn, c.Learn)
	p.contract, p.sum = newPool(p, add(query.StageContract, c.Workers),
		c.Prefetch), add(query.StageAggregate, c.Aggregate)
	p.server, p.cores = add("server", c.Server), add("cores", c.Cores)
	return p
}

// compute holds a core for d: of the shared machine, or of the worker's own, which it holds already.
func (p *pipeline) compute(d float64, own bool, then func()) {
	if own {
		p.after(d, then)
		return
	}
	p.cores.use(d, then)
}

// serve is the server's part of a message.
func (p *pipeline) serve(then func()) {
	d := p.m.Message * p.m.ServerShare
	if d <= 0 {
		then()
		return
	}
	p.server.acquire(func() {
		p.cores.use(d, func() {
			p.server.release()
			then()
		})
	})
}

// trips asks the server n times, one after the other, and waits for the replies.
func (p *pipeline) trips(n int, own bool, then func()) {
	if n <= 0 {
		then()
		return
	}
	p.compute(p.m.Message*(1-p.m.ServerShare), own, func() {
		p.after(p.m.Hop, func() {
			p.serve(func() { p.after(p.m.Hop, func() { p.trips(n-1, own, then) }) })
		})
	})
}

// work is a message's time in a stage: it is fetched by a free worker, which computes, asks the
// server, and calls out when its output is stored; the worker is free again after the
// acknowledgement.
func (p *pipeline) work(stage *resource, d float64, trips int, out func()) {
	stage.acquire(func() {
		p.trips(1, false, func() { // the fetch
			p.process(d, trips, false, out, stage.release)
		})
	})
}

// process is work after the fetch; then is called after the acknowledgement.
func (p *pipeline) process(d float64, trips int, own bool, out, then func()) {
	p.compute(d, own, func() {
		p.trips(trips-1, own, func() {
			out()
			p.trips(1, own, then)
		})
	})
}

// job is one on its way.
type job struct {
	began, ended float64
	reparam      float64
	learn        float64
	chunks       []float64
	aggregate    float64
	left         int
}

// newJob draws the service times of a job, in the same sequence under any configuration.
func (p *pipeline) newJob() *job {
	j := &job{reparam: draw(p.r, p.m.Reparam), learn: draw(p.r, p.m.Learn), aggregate: draw(p.r, p.m.Aggregate)}
	j.chunks = make([]float64, draw(p.r, p.m.Chunks))
	for k := range j.chunks {
		j.chunks[k] = draw(p.r, p.m.Contract)
	}
	j.left = len(j.chunks)
	return j
}

// start sends a job on its way; done is called with its answer.
func (p *pipeline) start(j *job, done func(*job)) {
	j.began = p.now
	p.cores.use(p.m.Publisher, func() {
		p.after(p.m.Hop, func() {
			p.serve(func() { p.reparameterise(j, done) })
		})
	})
}

func (p *pipeline) reparameterise(j *job, done func(*job)) {
	p.work(p.reparam, j.reparam, tripsReparam, func() { p.decompose(j, done) })
}

// decompose stores the tasks, all but one of them under way together.
func (p *pipeline) decompose(j *job, done func(*job)) {
	p.work(p.learn, j.learn, tripsOf(len(j.chunks)).learn, func() {
		for k := range j.chunks {
			send := func() { p.chunk(j, k, done) }
			if k == 0 {
				send()
				continue
			}
			p.compute(p.m.Message*(1-p.m.ServerShare), false, func() { p.serve(send) })
		}
	})
}

func (p *pipeline) chunk(j *job, k int, done func(*job)) {
	p.contract.work(j.chunks[k], tripsOf(len(j.chunks)).contract, !p.c.Shared, func() { p.partial(j, done) })
}

// partial is an aggregator's work, on messages fetched ahead. Those before the last are counted, and
// acknowledged with it.
func (p *pipeline) partial(j *job, done func(*job)) {
	p.trips(1, false, func() {
		if j.left--; j.left > 0 {
			return
		}
		read, n := 0, len(j.chunks)
		if n > 1 {
			read = (n + fetchedAtOnce - 1) / fetchedAtOnce
			p.chargeMessages(n - read + n - 1)
		}
		p.sum.acquire(func() {
			p.process(j.aggregate, read+tripsOf(n).aggregate, false, func() { p.reply(j, done) }, p.sum.release)
		})
	})
}

// reply is the answer on its way to the client.
func (p *pipeline) reply(j *job, done func(*job)) {
	p.serve(func() {
		p.after(p.m.Hop, func() {
			j.ended = p.now
			done(j)
		})
	})
}

// chargeMessages is the cost of n messages for which nobody waits one by one.
func (p *pipeline) chargeMessages(n int) {
	for range n {
		p.compute(p.m.Message*(1-p.m.ServerShare), false, func() { p.serve(func() {}) })
	}
}
