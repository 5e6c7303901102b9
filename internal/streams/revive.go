package streams

// Streams of one replica in a cluster, whose server may end for good, are made anew on another one, empty: what they held can be
// made again from the models, and the sweeper sees to that.

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/nats-io/nats.go/jetstream"
)

// Reviver looks after the streams of one replica. It runs in an aggregator; several may.
type Reviver struct {
	Bus    *bus.Bus
	Log    *slog.Logger
	Mender *Mender

	begun bool // streams were made anew, and perhaps not all their consumers

	mu    sync.Mutex
	alone bool               // the stream that answered last was in the memory of one server
	kept  bool               // it was not
	quiet map[string]silence // streams that did not answer, by name
}

// silence is that of a stream.
type silence struct {
	since   time.Time
	missing bool // there is no such stream
}

const (
	reviveEvery  = time.Second
	reviveWithin = time.Second // for one question

	// A server of which the others have heard nothing for 3 s is not given a stream again. Where it is not known yet how many replicas
	// there are, it takes longer: streams of several are silent while they choose a leader.
	aloneGone  = 3 * time.Second
	leaderGone = 30 * time.Second

	mendWithin   = 3 * time.Second        // what a leader took with it is never answered
	reviveSpread = 500 * time.Millisecond // several aggregators do not all act at once
)

// Watch makes lost streams anew until ctx ends. On a single server it does nothing.
func (r *Reviver) Watch(ctx context.Context) error {
	for {
		if r.Bus.NC.ConnectedClusterName() != "" {
			if err := r.look(ctx); err != nil && ctx.Err() == nil {
				r.Bus.Trouble.Warn(r.Log, "cannot make a lost stream anew", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reviveEvery):
		}
	}
}

// look asks every stream that can be made again whether it is there, and makes anew those that are lost.
func (r *Reviver) look(ctx context.Context) error {
	lost := r.lost(ctx)
	if len(lost) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rand.N(reviveSpread)):
		}
		lost = r.lost(ctx)
	}
	if len(lost) == 0 && !r.begun {
		return nil
	}

	for name, is := range lost {
		if is.missing {
			continue
		}
		r.Log.Warn("the server of a stream is gone", "stream", name)
		one, cancel := context.WithTimeout(ctx, reviveWithin)
		err := r.Bus.JS.DeleteStream(one, name)
		cancel()
		// Who would say that it is deleted is the one who is gone.
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, mendWithin)
	defer cancel()
	err := r.Mender.Mend(ctx)
	r.begun = err != nil
	return err
}

// lost returns the streams that do not answer or are missing, if one of them has been so for too long: they are made anew together.
func (r *Reviver) lost(ctx context.Context) map[string]silence {
	var all sync.WaitGroup
	for name := range remade {
		all.Go(func() { r.ask(ctx, name) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	after := leaderGone
	switch {
	case r.kept:
		return nil
	case r.alone:
		after = aloneGone
	}
	for _, is := range r.quiet {
		if time.Since(is.since) >= after {
			return maps.Clone(r.quiet)
		}
	}
	return nil
}

// ask asks a stream how it is, and notes whether it answers.
func (r *Reviver) ask(ctx context.Context, name string) {
	began := time.Now()
	one, cancel := context.WithTimeout(ctx, reviveWithin)
	defer cancel()
	s, err := r.Bus.JS.Stream(one, name)

	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		is := s.CachedInfo().Config
		r.alone = is.Replicas == 1 && is.Storage == jetstream.MemoryStorage
		r.kept = !r.alone
		delete(r.quiet, name)
		return
	}
	if r.quiet == nil {
		r.quiet = map[string]silence{}
	}
	is := r.quiet[name]
	if is.since.IsZero() {
		is.since = began
	}
	is.missing = errors.Is(err, jetstream.ErrStreamNotFound)
	r.quiet[name] = is
}
