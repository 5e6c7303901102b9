package faults

// The classes of faults.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// class is a kind of faults.
type class struct {
	name  string
	about string        // for people
	goal  time.Duration // of the 99th percentile of recoveries; 0: none was set

	strike   func(ctx context.Context, b *batch) error // makes one fault, and returns when it is over
	every    time.Duration                             // about so long between two
	parallel int                                       // at the same time
	worth    float64                                   // number of other faults that one counts for; 0: one

	cluster bool // several servers only
	single  bool // one server only
	alone   bool // a stack of its own
	two     bool // two versions
	clock   bool // workers with another clock
	room    int64
	sync    string // sync_interval of the servers; empty: as deployed
	admin   bool   // somebody has the servers' system account
	answers bool   // answers may be deleted
	models  bool   // models may be deleted
	retold  bool   // an answer may be told again: servers that all restart apply their log again
	// requests: large requests may be deleted, and their jobs end with an error that says so
	requests bool
	prepare  func(folder string) error
	clean    func(folder string)
}

// weight is the share of the configured number of faults that a batch has.
func (c *class) weight() float64 {
	if c.worth == 0 {
		return 1
	}
	return 1 / c.worth
}

// Recovery goals.
const (
	workerGoal = 5 * time.Second
	leaderGoal = 10 * time.Second
)

// classes are all there are.
var classes = slices.Concat(workerClasses, wireClasses, serverClasses, powerClasses, redisClasses, storedClasses, mixedClasses)

// find returns a class by its name, nil if there is none.
func find(name string) *class {
	for _, c := range classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// choose returns the classes of these names, or all that can be run.
func choose(names []string, cluster bool) ([]*class, error) {
	var list []*class
	for _, name := range names {
		c := find(name)
		switch {
		case c == nil:
			return nil, fmt.Errorf("faults: no class %q; there are %s", name, strings.Join(Classes(), ", "))
		case c.cluster && !cluster || c.single && cluster:
			return nil, fmt.Errorf("faults: class %s: is not for %d servers", name, map[bool]int{false: 1, true: 3}[cluster])
		}
		list = append(list, c)
	}
	if len(names) > 0 {
		return list, nil
	}
	for _, c := range classes {
		if !(c.cluster && !cluster || c.single && cluster) {
			list = append(list, c)
		}
	}
	return list, nil
}

// Classes returns the names of all classes.
func Classes() []string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = c.name
	}
	return names
}

// armedFor is how long a message is waited for at whose point a worker is to be killed.
const armedFor = 10 * time.Second

var workerClasses = []*class{
	{
		name: "kill-fetched", about: "SIGKILL just after a delivery",
		goal: workerGoal, every: 500 * time.Millisecond, parallel: 4, strike: killAt(fetched),
	},
	{
		name: "kill-published", about: "SIGKILL between storage of an output and its acknowledgement",
		goal: workerGoal, every: 500 * time.Millisecond, parallel: 4, strike: killAt(published),
	},
	{
		name: "kill-acking", about: "SIGKILL at an acknowledgement, which is lost",
		goal: workerGoal, every: 500 * time.Millisecond, parallel: 4, strike: killAt(acking),
	},
	{
		name: "pause", about: "SIGSTOP of a worker, SIGCONT after 0.3 to 7 s",
		goal: workerGoal, every: 700 * time.Millisecond, parallel: 4, strike: onWorker(pauseWorker),
	},
	{
		name: "memory", about: "the kernel kills a worker that exceeds its control group's memory",
		goal: workerGoal, every: 800 * time.Millisecond, parallel: 3, strike: starve,
	},
	{
		name: "stop", about: "SIGTERM of a worker",
		goal: workerGoal, every: 500 * time.Millisecond, parallel: 4, strike: onWorker(stopWorker),
	},
}

// blow is a fault that begins, lasts and ends.
type blow struct {
	what  string
	begin func()
	lasts time.Duration
	end   func()
}

// onWorker strikes a worker, which holds up the jobs that it has just before the end.
func onWorker(draw func(b *batch, w *worker) blow) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		w, over := b.victim()
		defer over()
		x := draw(b, w)
		s := b.begin("%s%s", w, x.what)
		if x.begin != nil {
			x.begin()
		}
		pause(ctx, x.lasts)
		b.l.holds(s, w.nats.holds(false))
		if x.end != nil {
			x.end()
		}
		return nil
	}
}

// rounded writes a time.
func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

// killAt kills a worker when a message is at a point.
func killAt(at point) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		w, over := b.victim()
		defer over()
		think := b.between(0, 3*time.Millisecond)
		fired := w.nats.arm(at, func() {
			if at == fetched {
				time.Sleep(think) // it may have begun
			}
			s := b.begin("%s", w)
			b.l.holds(s, w.nats.holds(false))
			w.kill(func(held map[string]time.Time) { b.l.holds(s, held) })
		})
		select {
		case <-fired:
		case <-ctx.Done():
		case <-time.After(armedFor):
			if w.nats.disarm() {
				return nil // nothing came: no fault
			}
			<-fired
		}
		return nil
	}
}

// pauseWorker stops a worker for a while.
func pauseWorker(b *batch, w *worker) blow {
	for_ := b.between(300*time.Millisecond, 7*time.Second)
	return blow{" for " + rounded(for_), func() { w.signal(syscall.SIGSTOP) }, for_, func() { w.signal(syscall.SIGCONT) }}
}

// stopWorker ends a worker in good order.
func stopWorker(_ *batch, w *worker) blow { return blow{end: func() { w.replace(w.command...) }} }

var wireClasses = []*class{
	{
		name: "cut", about: "a worker's connections to NATS are closed",
		goal: workerGoal, every: 500 * time.Millisecond, parallel: 4, strike: onWorker(cut),
	},
	{
		name: "hole", about: "a worker's connections to NATS become black holes; new ones get no answer for 0 to 3 s",
		goal: workerGoal, every: 700 * time.Millisecond, parallel: 4, strike: onWorker(hole),
	},
	{
		name: "half-open", about: "a worker's connections to NATS end on one side only, or carry nothing to it",
		goal: workerGoal, every: 700 * time.Millisecond, parallel: 4, strike: onWorker(halfOpen),
	},
	{
		name: "delay", about: "traffic between a worker and NATS is late by 20 to 800 ms, for 1 to 4 s",
		every: 700 * time.Millisecond, parallel: 4, strike: onWorker(delay),
	},
	{
		name: "slow", about: "a worker takes 1 to 16 KB/s from NATS, for 1 to 6 s",
		every: 700 * time.Millisecond, parallel: 4, strike: onWorker(slow),
	},
	{
		name: "twice", about: "4 to 20 deliveries, publishes and acknowledgements of a worker pass twice",
		every: 500 * time.Millisecond, parallel: 3, strike: onWorker(disorderly(func(g *gate, n int) { g.twice += n })),
	},
	{
		name: "swap", about: "4 to 20 of them change places with the next",
		every: 500 * time.Millisecond, parallel: 3, strike: onWorker(disorderly(func(g *gate, n int) { g.swap += n })),
	},
	{
		name: "flip", about: "one bit of a message to or from a worker changes: a model, network, task, partial, answer, blob or control",
		every: 150 * time.Millisecond, parallel: 4, strike: onWorker(flip),
	},
	{
		name: "replay", about: "up to 16 messages of a worker are published again after seconds",
		every: 700 * time.Millisecond, parallel: 1, strike: replay,
	},
}

func cut(_ *batch, w *worker) blow { return blow{end: w.nats.cut} }

// settleFor is how long connections that are lost for one side are left so: longer than a message is another worker's.
const settleFor = 5 * time.Second

func hole(b *batch, w *worker) blow {
	refuse := b.between(0, 3*time.Second)
	return blow{", new connections after " + rounded(refuse), func() {
		w.nats.swallow()
		time.AfterFunc(refuse, w.nats.admit)
	}, settleFor, w.nats.bury}
}

func halfOpen(b *batch, w *worker) blow {
	ended := b.draw(2) == 0
	return blow{fmt.Sprintf(", ended on its side: %v", ended), func() { w.nats.halve(ended) }, settleFor, w.nats.bury}
}

func delay(b *batch, w *worker) blow {
	by, for_ := b.between(20*time.Millisecond, 800*time.Millisecond), b.between(time.Second, 4*time.Second)
	set := func(by time.Duration) func() { return func() { w.nats.set(func(g *gate) { g.delay = by }) } }
	return blow{" by " + rounded(by) + " for " + rounded(for_), set(by), for_, set(0)}
}

func slow(b *batch, w *worker) blow {
	rate, for_ := 1000+b.draw(15000), b.between(time.Second, 6*time.Second)
	set := func(rate int) func() { return func() { w.nats.set(func(g *gate) { g.rate = rate }) } }
	return blow{fmt.Sprintf(", %d bytes/s for %s", rate, rounded(for_)), set(rate), for_, set(0)}
}

// disorderly has a worker's messages pass twice or in another order.
func disorderly(set func(g *gate, n int)) func(*batch, *worker) blow {
	return func(b *batch, w *worker) blow {
		n := 4 + b.draw(17)
		return blow{fmt.Sprint(", ", n), func() { w.nats.set(func(g *gate) { set(g, n) }) }, 500 * time.Millisecond, nil}
	}
}

// flip changes one bit of the next message that a worker sends or gets.
func flip(_ *batch, w *worker) blow {
	set := func(flips int) func() { return func() { w.nats.set(func(g *gate) { g.flips = flips }) } }
	return blow{"", set(1), 400 * time.Millisecond, set(0)}
}

// replay publishes again a worker's earlier messages, in another order, and over another connection.
func replay(ctx context.Context, b *batch) error {
	w, over := b.victim()
	defer over()
	all := w.nats.recent()
	n := min(len(all), 1+b.draw(16))
	if n == 0 {
		return nil
	}
	s := b.begin("%s, %d of the last %d", w, n, len(all))
	held := map[string]time.Time{}
	for range n {
		one := all[b.draw(len(all))]
		held[one.job()] = time.Now()
		if err := b.s.nc.PublishMsg(one.message()); err != nil {
			return err
		}
	}
	b.l.holds(s, held)
	return b.s.nc.FlushTimeout(5 * time.Second)
}

var errNoGroups = errors.New("faults: control groups of memory (version 1, below /sys/fs/cgroup/memory) are not permitted here")
