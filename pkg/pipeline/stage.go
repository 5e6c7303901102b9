package pipeline

import (
	"context"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/internal/streams"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Stage is one of the four workers, by its name in errors, logs, timings, progress and dead letters.
type Stage string

// The stages, in the order a job passes them.
const (
	StageReparam   Stage = stage.StageReparam   // model → network
	StageLearn     Stage = stage.StageLearn     // network → decompositions, tasks
	StageContract  Stage = stage.StageContract  // task → values of its components
	StageAggregate Stage = stage.StageAggregate // values → the answer; also cancels, deadlines and the sweeper
)

// Stages returns all four.
func Stages() []Stage { return []Stage{StageReparam, StageLearn, StageContract, StageAggregate} }

// handler works on one delivery. What its error means is decided by settle.
type handler func(ctx context.Context, d *delivery) error

// intake is a feed with what becomes of its messages.
type intake struct {
	streams.Feed
	handle   handler
	prefetch int                         // messages of a lane, in hand or asked for, while they are quick
	parallel int                         // messages worked on at a time, unless configured; 1: always
	patient  bool                        // no limit of deliveries, nor of failures
	watches  bool                        // no limit of deliveries: messages come back until their job has its answer
	heavy    func(m *bus.Delivered) bool // whether a message may take long and much memory; nil: none does
	room     *bus.Room                   // before the next stage; nil: not bounded by lanes
}

// short is the prefetch where a message never takes longer than milliseconds. Where one may take longer it is less: what waits
// in this process keeps it from another one that may be free. The client library's own default is 500.
const short = 16

func (w *worker) intakes() []intake {
	switch w.stage {
	case StageReparam:
		w.next = w.bus.Room(bus.StreamNetwork, bus.ConsumerNetwork, 4)
		return []intake{
			{Feed: streams.Models, handle: w.reparam, prefetch: 2, parallel: 4, room: w.next},
			{Feed: streams.Redrives, handle: w.redriven, prefetch: 1, parallel: 1, watches: true},
		}
	case StageLearn:
		w.next = w.bus.Room(bus.StreamTask, bus.ConsumerTask, 4)
		return []intake{{Feed: streams.Networks, handle: w.learn, prefetch: 2, parallel: 4, room: w.next}}
	case StageContract:
		return []intake{{Feed: streams.Tasks, handle: w.contract, prefetch: 1, parallel: 8, heavy: heavy}}
	case StageAggregate:
		in := []intake{
			{Feed: streams.Partials, handle: w.tallies.partial, prefetch: short, parallel: 4},
			{Feed: streams.Deadlines, handle: w.expired, prefetch: short, parallel: 1},
			{Feed: streams.Cancels, handle: w.cancelled, prefetch: short, parallel: 1},
		}
		if w.SweepAfter > 0 {
			w.keeper = &streams.Keeper{Bus: w.bus, Log: w.log, SweepAfter: w.SweepAfter, Tell: w.Metrics.room}
			in = append(in, intake{Feed: streams.Sweeps, handle: w.sweep, prefetch: sweepAhead, parallel: 1, patient: true})
		}
		return in
	}
	return nil
}

// progress tells people how far a job is, over core NATS.
func (w *worker) progress(job string, stage Stage, done, total int) {
	w.tell(job, stage, done, total, "")
}

// tell is progress with something to say.
func (w *worker) tell(job string, stage Stage, done, total int, text string) {
	p := &wire.Progress{Job: job, Stage: string(stage), Done: int64(done), Total: int64(total), Text: text, Time: now().UnixMilli()}
	if b, err := wire.Encode(p); err == nil {
		w.bus.NC.Publish(wire.ProgressSubject(job), b)
	}
}
