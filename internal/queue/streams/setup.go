package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Bytes for all streams together that are tried first when Config.MaxBytes is 0, and the least that
// is tried.
const (
	roomInFiles  = int64(16) << 30
	roomInMemory = int64(4) << 30
	leastRoom    = int64(64) << 20
)

// Setup creates the streams and consumers that are missing and brings the others up to date. Any
// number of processes may call it at any time. Streams that exist keep their size unless
// Config.MaxBytes is given. Without it the room is halved from 16 GiB (4 GiB in memory) until the
// server reserves it.
//
// A cluster that is choosing a leader, or that misses servers, is waited for, half a minute at most, and asked again where an answer is
// lost. An interrupted setup is finished by the next call. Settings below 0 are bad input.
func Setup(ctx context.Context, nc *nats.Conn, c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	each, end := withoutDeadline(ctx)
	defer end()
	said := ""
	wait := func(obstacle error) {
		if text := obstacle.Error(); c.Log != nil && text != said {
			said = text
			c.Log.Warn("setup waits", "for", obstacle)
		}
		bus.Pause(ctx, leaderPause)
	}
	for until := time.Now().Add(leaderPatience); ; {
		err := setup(each, nc, c, wait)
		lost := errors.Is(err, context.DeadlineExceeded)
		switch {
		case err != nil && ctx.Err() != nil:
			return fault.New(fault.Infrastructure, "pipeline: setup: %w: %v", ctx.Err(), err)
		case !lost && !unavailable(err) || time.Now().After(until):
			return err
		}
		wait(err)
	}
}

// peerPatience is how long a cluster is waited for that says that its servers have too little room, before less is tried, and
// leaderPatience where nothing less is left: its leader may not have heard of them yet.
const (
	leaderPatience = 30 * time.Second
	answerPatience = 5 * time.Second // of one of the questions within it
	leaderPause    = 200 * time.Millisecond
	peerPatience   = 5 * time.Second
)

// withoutDeadline returns a context that ends with ctx and has no deadline: the client library gives a request answerPatience then, and
// else as long as ctx has, also where its answer is lost.
func withoutDeadline(ctx context.Context) (context.Context, func()) {
	each, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return each, func() { stop(); cancel() }
}

// unavailable reports whether a cluster has no leader yet for a request, or misses servers for it.
func unavailable(err error) bool {
	return refused(err, 10008, "") || refused(err, 10005, "peer offline") && !noPeers(err)
}

// refused reports whether the server refused a request with a code and a text.
func refused(err error, code jetstream.ErrorCode, text string) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code && strings.Contains(api.Description, text)
}

// setup is one attempt of Setup. wait is called for an obstacle that may pass.
func setup(ctx context.Context, nc *nats.Conn, c Config, wait func(error)) error {
	patience := jetstream.WithDefaultTimeout(bus.AnswerWithin(nc, answerPatience))
	js, err := jetstream.NewWithAPIPrefix(nc, cmp.Or(c.API, jetstream.DefaultAPIPrefix), patience)
	var used Config
	var room int64
	var have map[string]bool
	if err == nil {
		used, room, have, err = inUse(ctx, js)
	}
	if err != nil {
		return fault.New(fault.Infrastructure, "pipeline: setup: %w", err)
	}
	usual := roomInFiles
	if have[bus.StreamModel] {
		c.InMemory = used.InMemory
	}
	if c.InMemory {
		usual = roomInMemory
	}
	room = cmp.Or(c.MaxBytes, room, usual)
	c.Keep = cmp.Or(c.Keep, used.Keep)
	c.KeepAtLeast = cmp.Or(c.KeepAtLeast, used.KeepAtLeast)
	c.Backlog = cmp.Or(c.Backlog, used.Backlog)
	c.Replicas = cmp.Or(c.Replicas, used.Replicas)
	c = c.WithDefaults()
	if c.KeepAtLeast > c.Keep {
		return fault.New(fault.BadInput, "pipeline: answers are to be kept for %v at least and %v at most", c.KeepAtLeast, c.Keep)
	}

	var created []string // with so much room
	most, began, peers := room, time.Now(), peerPatience
	if c.MaxBytes > 0 {
		peers = leaderPatience
	}
	for {
		more, err := setupStreams(ctx, js, c, room)
		created = append(created, more...)
		if err == nil {
			break
		}

		if noPeers(err) && time.Since(began) < peers || noFolder(err) && time.Since(began) < peerPatience {
			wait(err)
			continue
		}
		again := noPeers(err) && time.Since(began) < leaderPatience && ctx.Err() == nil
		if !lacksRoom(err) || c.MaxBytes > 0 || room/2 < leastRoom && !again {
			return fault.New(
				fault.Infrastructure, "pipeline: setup with %d MiB for all streams: %w", room>>20,
				err,
			)
		}
		// The streams that this call made are empty: they go before it tries with half the room.
		for _, name := range created {
			if err := js.DeleteStream(ctx, name); err != nil {
				return fault.New(fault.Infrastructure, "pipeline: setup: stream %s: %w", name, err)
			}
		}
		created = nil
		if room /= 2; room < leastRoom { // a busy leader may still count what was deleted, or not know of its servers
			room = most
			wait(err)
		}
	}

	for _, f := range feeds {
		if err := setupConsumers(ctx, js, f, c); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: setup: stream %s: %w", f.Stream, err)
		}
	}
	return nil
}

// inUse reads the options of streams off the existing ones (have); others are 0. room is in bytes, for all streams together. Where
// the number of replicas was being changed, and that was interrupted, the larger one counts: nothing becomes less safe unasked.
func inUse(ctx context.Context, js jetstream.JetStream) (c Config, room int64, have map[string]bool, err error) {
	have = map[string]bool{}
	for _, like := range topology(Config{}) {
		s, err := js.Stream(ctx, like.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return c, 0, nil, fmt.Errorf("stream %s: %w", like.Name, err)
		}

		is := s.CachedInfo().Config
		have[like.Name] = true
		c.Replicas = max(c.Replicas, is.Replicas)
		if !remade[like.Name] || is.Replicas == 1 {
			c.InMemory = is.Storage == jetstream.MemoryStorage
		}
		room = max(room, is.MaxBytes/like.MaxBytes*shares)
		if like.Name == bus.StreamModel || like.Name == bus.StreamAnswer {
			c.Keep = cmp.Or(c.Keep, is.MaxAge)
		}
		if n := is.Metadata[bus.MetadataBacklog]; n != "" {
			fmt.Sscan(n, &c.Backlog)
		}
		if is.Metadata[bus.MetadataKeepAtLeast] != "" {
			c.KeepAtLeast = bus.TimesOf(is.Metadata).Answers
		}
	}
	return c, room, have, nil
}

// setupTries is the number of attempts to set up consumers that others make or delete at the same
// time: every worker recreates those it misses, once.
const setupTries = 100

// meanwhile reports whether the server refused a consumer because somebody else made or deleted one
// after it was looked up: it exists or is gone, or another one of the work queue takes the same
// subjects (error codes 10099 and 10100).
func meanwhile(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerDoesNotExist) ||
		refused(err, 10099, "") || refused(err, 10100, "")
}

// lacksRoom reports whether the server refused to reserve that many bytes.
func lacksRoom(err error) bool {
	account, server := refused(err, 10002, ""), refused(err, 10023, "")
	memory, storage := refused(err, 10028, ""), refused(err, 10047, "")
	return account || server || memory || storage || noPeers(err)
}

// noPeers reports whether no servers of a cluster have that many bytes, or none that its leader knows of.
func noPeers(err error) bool {
	return refused(err, 10005, "insufficient storage")
}

// noFolder reports whether a server has no folder for a stream: it removes an account's folder some time after the last stream is deleted,
// as with those of an attempt with more room.
func noFolder(err error) bool { return refused(err, 10049, "") }

// setupStreams sets up all streams, and returns the names of those that it created.
func setupStreams(
	ctx context.Context, js jetstream.JetStream, c Config, room int64,
) (created []string, err error) {
	for _, want := range topology(c) {
		want.MaxBytes = bytesOf(want, room)
		fresh, err := setupStream(ctx, js, want, c.MaxBytes > 0)
		if err != nil {
			return created, fmt.Errorf("stream %s: %w", want.Name, err)
		}
		if fresh {
			created = append(created, want.Name)
		}
	}
	return created, nil
}

// setupStream creates a stream, or updates the options that may be updated: an existing one keeps
// its storage and retention. Those that
// can be made again have their storage by the number of replicas: where that changes they are
// recreated, empty, and the sweeper has the jobs begin again that were on their way through them.
func setupStream(
	ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, resize bool,
) (fresh bool, err error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, want)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}

	have := s.CachedInfo().Config
	if remade[want.Name] && want.Storage != have.Storage {
		if err := js.DeleteStream(ctx, want.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, err
		}
		_, err = js.CreateStream(ctx, want)
		return false, err
	}

	want.Storage = have.Storage
	want.Retention = have.Retention
	want.PersistMode = have.PersistMode
	if !resize {
		want.MaxBytes = have.MaxBytes
	}
	_, err = js.UpdateStream(ctx, want)
	return false, err
}

// setupConsumers makes the feed's consumers and removes the consumers of the other split, which
// would take the same subjects of a work queue. It begins again where others make or delete
// consumers at the same time.
func setupConsumers(ctx context.Context, js jetstream.JetStream, f Feed, c Config) error {
	err := setupConsumersOnce(ctx, js, f, c)
	for tries := 0; tries < setupTries && meanwhile(err); tries++ {
		err = setupConsumersOnce(ctx, js, f, c)
	}
	return err
}

// setupConsumersOnce is one attempt of setupConsumers.
func setupConsumersOnce(ctx context.Context, js jetstream.JetStream, f Feed, c Config) error {
	s, err := js.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}

	wanted := map[string]bool{}
	for _, cc := range f.consumers(c) {
		wanted[cc.Durable] = true
	}

	other := c
	other.OneConsumer = !c.OneConsumer

	existing, err := consumersOf(ctx, s)
	if err != nil {
		return err
	}
	for _, cc := range f.consumers(other) {
		if existing[cc.Durable] && !wanted[cc.Durable] {
			err := s.DeleteConsumer(ctx, cc.Durable)
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
	}

	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(wire.Lanes)
	for _, cc := range f.consumers(c) {
		g.Go(func() error {
			set, moved := s.CreateConsumer, false
			is, err := jetstream.Consumer(nil), error(jetstream.ErrConsumerNotFound)
			if existing[cc.Durable] {
				is, err = consumer(ctx, s, cc.Durable, js.Conn().ConnectedClusterName() != "")
			}
			if err == nil {
				// Where an existing consumer began cannot be changed.
				have := is.CachedInfo().Config
				cc.DeliverPolicy = have.DeliverPolicy
				cc.OptStartSeq = have.OptStartSeq
				cc.OptStartTime = have.OptStartTime
				set = s.UpdateConsumer
				if cc.MemoryStorage != have.MemoryStorage {
					set, moved = s.CreateConsumer, true
					err = moveConsumer(ctx, s, is.CachedInfo(), &cc)
				}
			}
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return fmt.Errorf("consumer %s: %w", cc.Durable, err)
			}
			if err := placed(ctx, moved, func(ctx context.Context) error {
				_, err := set(ctx, cc)
				return err
			}); err != nil {
				return fmt.Errorf("consumer %s: %w", cc.Durable, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// consumersOf returns the names of the consumers of a stream.
func consumersOf(ctx context.Context, s jetstream.Stream) (map[string]bool, error) {
	list := s.ConsumerNames(ctx)
	names := map[string]bool{}
	for name := range list.Name() {
		names[name] = true
	}
	return names, list.Err()
}

// consumer asks for a consumer. In a cluster a server that is about to have it answers as well, as
// if nothing had been acknowledged, and names no leader: then it is asked again.
func consumer(ctx context.Context, s jetstream.Stream, name string, clustered bool) (jetstream.Consumer, error) {
	for until := time.Now().Add(leaderPatience); ; {
		var c jetstream.Consumer
		err := answered(ctx, func(ctx context.Context) (err error) {
			c, err = s.Consumer(ctx, name)
			return err
		})
		switch {
		case err != nil || !clustered || c.CachedInfo().Cluster != nil && c.CachedInfo().Cluster.Leader != "":
			return c, err
		case time.Now().After(until):
			return nil, fmt.Errorf("it has had no leader for %v", leaderPatience)
		}
		if bus.Pause(ctx, leaderPause); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// placed makes or changes a consumer, which takes hardly any room: a cluster without servers for it
// (10023) has not heard of them yet, or has no leader, and is asked again. One that was removed to
// be moved may be there for a while. It goes on when others fail, lest a consumer that was removed
// is lost with its acknowledgements.
func placed(ctx context.Context, moved bool, set func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderPatience)
	defer cancel()
	for began := time.Now(); ; {
		err := answered(ctx, set)
		switch {
		case unavailable(err), refused(err, 10023, ""):
		case moved && errors.Is(err, jetstream.ErrConsumerExists) && time.Since(began) < peerPatience:
		default:
			return err
		}
		if bus.Pause(ctx, leaderPause); ctx.Err() != nil {
			return err
		}
	}
}

// moveConsumer removes a consumer of kept messages that is to have another storage, and lets cc,
// which takes its place, begin behind the acknowledged messages. It is not found where the answer to its removal was lost.
func moveConsumer(ctx context.Context, s jetstream.Stream, is *jetstream.ConsumerInfo, cc *jetstream.ConsumerConfig) error {
	cc.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
	cc.OptStartSeq = is.AckFloor.Stream + 1
	cc.OptStartTime = nil
	return answered(context.WithoutCancel(ctx), func(ctx context.Context) error { return s.DeleteConsumer(ctx, cc.Durable) })
}

// answered makes a request that may be repeated, and repeats it where no answer comes for answerPatience: a leader may change while it is
// asked, and then nobody answers.
func answered(ctx context.Context, ask func(context.Context) error) error {
	for until := time.Now().Add(leaderPatience); ; {
		one, cancel := context.WithTimeout(ctx, answerPatience)
		err := ask(one)
		cancel()
		switch lost := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; {
		case lost && time.Now().After(until):
			return fmt.Errorf("no answer has come for %v: %w", leaderPatience, err)
		case !lost:
			return err
		}
	}
}
