package faults

// Faults of workers, and of their ways to NATS.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// armedFor is how long a message is waited for at whose point a worker is to be killed.
const armedFor = 10 * time.Second

// blow is a fault that begins, lasts and ends; begin and end may be nil.
type blow struct {
	what  string
	begin func()
	lasts time.Duration
	end   func() error
}

// process is a server of NATS or Redis.
type process interface {
	Kill()
	Restart() error
	Pause()
	Resume()
}

// killed kills a server, and starts it again after so long.
func killed(least, most time.Duration) func(*batch, process) blow {
	return func(b *batch, p process) blow {
		down := b.between(least, most)
		return blow{"down for " + rounded(down), p.Kill, down, p.Restart}
	}
}

// paused stops a server with SIGSTOP for so long.
func paused(least, most time.Duration) func(*batch, process) blow {
	return func(b *batch, p process) blow {
		length := b.between(least, most)
		return blow{"for " + rounded(length), p.Pause, length, without(p.Resume)}
	}
}

// without is an action that cannot fail.
func without(f func()) func() error { return func() error { f(); return nil } }

// onWorker strikes a worker, which holds up the jobs that it has just before the end.
func onWorker(draw func(b *batch, w *worker) blow) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		w, release := b.victim()
		defer release()
		x := draw(b, w)
		s := b.begin("%s%s", w, x.what)
		if x.begin != nil {
			x.begin()
		}
		pause(ctx, x.lasts)
		b.l.holds(s, w.nats.holds(false))
		if x.end != nil {
			return x.end()
		}
		return nil
	}
}

// rounded writes a time.
func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

// killAt kills a worker when a message is at a point.
func killAt(at point) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		w, release := b.victim()
		defer release()
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
	length := b.between(300*time.Millisecond, 7*time.Second)
	return blow{
		" for " + rounded(length), func() { w.signal(testserver.PauseSignal) }, length,
		without(func() { w.signal(testserver.ResumeSignal) }),
	}
}

// stopWorker ends a worker in good order.
func stopWorker(_ *batch, w *worker) blow {
	return blow{end: without(func() { w.replace(w.command...) })}
}

func cut(_ *batch, w *worker) blow { return blow{end: without(w.nats.cut)} }

// settleFor is how long connections that are lost for one side are left so: longer than a message is another worker's.
const settleFor = 5 * time.Second

func hole(b *batch, w *worker) blow {
	refuse := b.between(0, 3*time.Second)
	return blow{", new connections after " + rounded(refuse), func() {
		w.nats.swallow()
		time.AfterFunc(refuse, w.nats.admit)
	}, settleFor, without(w.nats.bury)}
}

func halfOpen(b *batch, w *worker) blow {
	ended := b.draw(2) == 0
	return blow{fmt.Sprintf(", ended on its side: %v", ended), func() { w.nats.halve(ended) }, settleFor, without(w.nats.bury)}
}

func delay(b *batch, w *worker) blow {
	by, length := b.between(20*time.Millisecond, 800*time.Millisecond), b.between(time.Second, 4*time.Second)
	set := func(by time.Duration) func() { return func() { w.nats.set(func(g *gate) { g.delay = by }) } }
	return blow{" by " + rounded(by) + " for " + rounded(length), set(by), length, without(set(0))}
}

func slow(b *batch, w *worker) blow {
	rate, length := 1000+b.draw(15000), b.between(time.Second, 6*time.Second)
	set := func(rate int) func() { return func() { w.nats.set(func(g *gate) { g.rate = rate }) } }
	return blow{fmt.Sprintf(", %d bytes/s for %s", rate, rounded(length)), set(rate), length, without(set(0))}
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
	return blow{"", set(1), 400 * time.Millisecond, without(set(0))}
}

// replay publishes again a worker's earlier messages, in another order, and over another connection.
func replay(ctx context.Context, b *batch) error {
	w, release := b.victim()
	defer release()
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
