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

// Bytes for all streams together. If Config.MaxBytes is 0, setup first tries the maximum in files or in memory, and
// halves it down to minRoom.
const (
	maxFileRoom   = int64(16) << 30
	maxMemoryRoom = int64(4) << 30
	minRoom       = int64(64) << 20
)

// Setup creates the streams and consumers that are missing, and brings the others up to date. Any number of processes
// may call it at any time. Existing streams keep their size unless Config.MaxBytes is given. Without that the room is
// halved from 16 GiB (4 GiB in memory) until the server reserves it.
//
// If a cluster is choosing a leader or misses servers, Setup asks again for at most half a minute. It also asks again
// if an answer is lost. The next call finishes an interrupted setup. Settings below 0 are bad input.
func Setup(ctx context.Context, nc *nats.Conn, c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	requestCtx, release := withoutDeadline(ctx) // so that no single request waits until the deadline of ctx
	defer release()
	lastText := "" // of the last obstacle, which is logged once
	noteAndWait := func(obstacle error) {
		if text := obstacle.Error(); c.Log != nil && text != lastText {
			lastText = text
			c.Log.Warn("setup waits", "for", obstacle)
		}
		bus.Pause(ctx, leaderPause)
	}
	for until := time.Now().Add(leaderPatience); ; {
		err := setupOnce(requestCtx, nc, c, noteAndWait)
		isUnanswered := errors.Is(err, context.DeadlineExceeded)
		switch {
		case err != nil && ctx.Err() != nil:
			return fault.New(fault.Infrastructure, "pipeline: setup: %w: %v", ctx.Err(), err)
		case !isUnanswered && !isUnavailable(err) || time.Now().After(until): // done, or asking again would not help
			return err
		}
		noteAndWait(err)
	}
}

const (
	leaderPatience = 30 * time.Second       // for how long requests are repeated in a cluster without a leader
	answerPatience = 5 * time.Second        // time limit of one request
	leaderPause    = 200 * time.Millisecond // between two requests
	// If a cluster says that its servers have too little room, its leader may not have heard of all of them yet. It is asked again
	// for peerPatience before less room is tried, and for leaderPatience if less cannot be tried.
	peerPatience = 5 * time.Second
)

// withoutDeadline returns a context that ends with ctx but has no deadline. The client library then bounds each request
// by answerPatience. With a deadline it would wait until that for an answer that is lost. The caller calls the returned
// function at the end.
func withoutDeadline(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return inner, func() { stop(); cancel() }
}

// Error codes of nats-server.
const (
	codeAccountFull   = 10002 // the account has reserved what it may
	codeNoPeers       = 10005 // no servers of the cluster are suitable, for the reasons in the text
	codeNoLeader      = 10008 // the cluster has no leader now
	codeNoResources   = 10023 // too few resources, of any kind
	codeMemoryFull    = 10028
	codeStorageFull   = 10047
	codeNotStored     = 10049 // the server cannot make the stream's files
	codeTakesAll      = 10099 // another consumer of the work queue takes all subjects
	codeSubjectsTaken = 10100 // another consumer of the work queue takes some of the subjects
)

// isUnavailable reports whether a request failed because a cluster has no leader yet, or misses servers for it.
func isUnavailable(err error) bool {
	noLeader := isRefusal(err, codeNoLeader, "")
	peerOffline := isRefusal(err, codeNoPeers, "peer offline") && !lacksPeers(err)
	return noLeader || peerOffline
}

// isRefusal reports whether err is the server's error with a code and a text that contains the given one.
func isRefusal(err error, code jetstream.ErrorCode, text string) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code && strings.Contains(api.Description, text)
}

// setupOnce is one attempt of Setup. wait is called for an obstacle that may pass.
func setupOnce(ctx context.Context, nc *nats.Conn, c Config, wait func(error)) error {
	timeout := jetstream.WithDefaultTimeout(bus.AnswerWithin(nc, answerPatience))
	js, err := jetstream.NewWithAPIPrefix(nc, cmp.Or(c.API, jetstream.DefaultAPIPrefix), timeout)
	var room int64
	if err == nil {
		c, room, err = withExistingOptions(ctx, js, c)
	}
	if err != nil {
		return fault.New(fault.Infrastructure, "pipeline: setup: %w", err)
	}
	if c.KeepAtLeast > c.Keep {
		return fault.New(fault.BadInput, "pipeline: answers are to be kept for %v at least and %v at most", c.KeepAtLeast, c.Keep)
	}

	// Set up the streams, then their consumers.
	if err := fitStreams(ctx, js, c, room, wait); err != nil {
		return err
	}
	for _, f := range feeds {
		if err := setupConsumers(ctx, js, f, c); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: setup: stream %s: %w", f.Stream, err)
		}
	}
	return nil
}

// withExistingOptions returns c with all options set. An option that c does not give is that of the existing streams, or
// else a default. The stored messages stay in memory or in files, whatever c says. room is the number of bytes for all
// streams together.
func withExistingOptions(ctx context.Context, js jetstream.JetStream, c Config) (_ Config, room int64, err error) {
	used, usedRoom, existing, err := existingOptions(ctx, js)
	if err != nil {
		return c, 0, err
	}
	if existing[bus.StreamModel] {
		c.InMemory = used.InMemory
	}
	defaultRoom := maxFileRoom
	if c.InMemory {
		defaultRoom = maxMemoryRoom
	}
	c.Keep = cmp.Or(c.Keep, used.Keep)
	c.KeepAtLeast = cmp.Or(c.KeepAtLeast, used.KeepAtLeast)
	c.Backlog = cmp.Or(c.Backlog, used.Backlog)
	c.Replicas = cmp.Or(c.Replicas, used.Replicas)
	return c.WithDefaults(), cmp.Or(c.MaxBytes, usedRoom, defaultRoom), nil
}

// fitStreams sets up all streams, with maxRoom bytes together. If the server has too few bytes, and c.MaxBytes does not
// fix the room, it tries half as many, down to minRoom. In a cluster it then begins again with maxRoom, because the
// leader may not have heard of all servers yet. wait is called for an obstacle that may pass.
func fitStreams(ctx context.Context, js jetstream.JetStream, c Config, maxRoom int64, wait func(error)) error {
	var created []string               // by this call, with the present room
	room, began := maxRoom, time.Now() // room: bytes of the present attempt
	peerTime := peerPatience           // for how long a cluster without enough servers is asked for the same room
	if c.MaxBytes > 0 {                // no other room may be tried
		peerTime = leaderPatience
	}
	for {
		newStreams, err := setupStreams(ctx, js, c, room)
		created = append(created, newStreams...)
		if err == nil {
			return nil
		}

		// Try again with the same room if the obstacle may pass.
		mayPass := lacksPeers(err) && time.Since(began) < peerTime || lacksFolder(err) && time.Since(began) < peerPatience
		if mayPass {
			wait(err)
			continue
		}

		// Give up if less room does not help or cannot be tried.
		mayBeginAgain := lacksPeers(err) && time.Since(began) < leaderPatience && ctx.Err() == nil // with maxRoom
		hasTriedAll := room/2 < minRoom && !mayBeginAgain
		if !lacksRoom(err) || c.MaxBytes > 0 || hasTriedAll {
			return fault.New(
				fault.Infrastructure, "pipeline: setup with %d MiB for all streams: %w", room>>20,
				err,
			)
		}

		// Try with half the room. Before that, delete the streams that this call made, which are empty and too large.
		for _, name := range created {
			if err := js.DeleteStream(ctx, name); err != nil {
				return fault.New(fault.Infrastructure, "pipeline: setup: stream %s: %w", name, err)
			}
		}
		created = nil
		if room /= 2; room < minRoom {
			room = maxRoom
			wait(err) // a busy leader may still count what was deleted, or not know of its servers
		}
	}
}

// existingOptions returns the options of the existing streams; those that they do not show are 0. existing has the names
// of the existing streams. room is the largest number of bytes for all streams that follows from one of them: topology
// gives each stream some of the shares (a constant, 48) of room. If streams have different numbers of replicas, because a
// change was interrupted, the largest one counts, so that nothing becomes less safe unasked.
func existingOptions(ctx context.Context, js jetstream.JetStream) (c Config, room int64, existing map[string]bool, err error) {
	existing = map[string]bool{}
	for _, stream := range topology(Config{}) {
		s, err := js.Stream(ctx, stream.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return c, 0, nil, fmt.Errorf("stream %s: %w", stream.Name, err)
		}

		current := s.CachedInfo().Config
		existing[stream.Name] = true
		c.Replicas = max(c.Replicas, current.Replicas)
		if !isRecreatable[stream.Name] || current.Replicas == 1 { // a recreatable stream with replicas is in memory in any case
			c.InMemory = current.Storage == jetstream.MemoryStorage
		}
		room = max(room, current.MaxBytes/stream.MaxBytes*shares)              // bytes of one share, times the number of shares
		if stream.Name == bus.StreamModel || stream.Name == bus.StreamAnswer { // the other streams keep longer than Keep, or not by age
			c.Keep = cmp.Or(c.Keep, current.MaxAge)
		}
		if n := current.Metadata[bus.MetadataBacklog]; n != "" {
			fmt.Sscan(n, &c.Backlog) // if it is no number, the backlog counts as not shown
		}
		if current.Metadata[bus.MetadataKeepAtLeast] != "" {
			c.KeepAtLeast = bus.TimesOf(current.Metadata).Answers
		}
	}
	return c, room, existing, nil
}

// setupTries is the number of attempts to set up consumers that others make or delete at the same time. Every worker
// recreates missing ones, once.
const setupTries = 100

// changedMeanwhile reports whether the server refused a request because somebody else made or deleted a consumer at the
// same time: it exists or is gone, or another one of the work queue takes the same subjects.
func changedMeanwhile(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerDoesNotExist) ||
		isRefusal(err, codeTakesAll, "") || isRefusal(err, codeSubjectsTaken, "")
}

// lacksRoom reports whether the server refused to reserve that many bytes: the account, the server, its memory, its
// storage or the cluster has too few.
func lacksRoom(err error) bool {
	for _, code := range []jetstream.ErrorCode{codeAccountFull, codeNoResources, codeMemoryFull, codeStorageFull} {
		if isRefusal(err, code, "") {
			return true
		}
	}
	return lacksPeers(err)
}

// lacksPeers reports whether no servers of a cluster have that many bytes, as far as its leader knows.
func lacksPeers(err error) bool {
	return isRefusal(err, codeNoPeers, "insufficient storage")
}

// lacksFolder reports whether a server has no folder for a stream. It removes an account's folder some time after the
// last stream was deleted, for instance after an attempt with more room.
func lacksFolder(err error) bool { return isRefusal(err, codeNotStored, "") }

// setupStreams sets up all streams, with room bytes together, and returns the names of those that it created.
func setupStreams(
	ctx context.Context, js jetstream.JetStream, c Config, room int64,
) (created []string, err error) {
	for _, config := range topology(c) {
		config.MaxBytes = streamBytes(config, room)
		isNew, err := setupStream(ctx, js, config, c.MaxBytes > 0) // existing streams are resized only if the room is given
		if err != nil {
			return created, fmt.Errorf("stream %s: %w", config.Name, err)
		}
		if isNew {
			created = append(created, config.Name)
		}
	}
	return created, nil
}

// setupStream creates a stream, or updates the options of an existing one that may be updated. An existing stream keeps
// its storage and retention, and unless mayResize its size. If a stream can be made again from the models and its
// storage has to change with the number of replicas, it is recreated, empty. The sweeper then starts the jobs again
// that were on their way through it.
func setupStream(
	ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig, mayResize bool,
) (isNew bool, err error) {
	s, err := js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, config)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}

	current := s.CachedInfo().Config
	if isRecreatable[config.Name] && config.Storage != current.Storage {
		if err := js.DeleteStream(ctx, config.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, err
		}
		_, err = js.CreateStream(ctx, config)
		return false, err // false: the stream was there before, so the caller does not delete it if it tries another size
	}

	config.Storage = current.Storage
	config.Retention = current.Retention
	config.PersistMode = current.PersistMode // the server refuses to change it
	if !mayResize {
		config.MaxBytes = current.MaxBytes
	}
	_, err = js.UpdateStream(ctx, config)
	return false, err
}

// setupConsumers makes the feed's consumers. If lanes were served by one consumer and are now served by one each, or
// the other way round, it removes the others, which would take the same subjects of a work queue. It begins again if
// others make or delete consumers at the same time.
func setupConsumers(ctx context.Context, js jetstream.JetStream, f Feed, c Config) error {
	err := setupConsumersOnce(ctx, js, f, c)
	for tries := 0; tries < setupTries && changedMeanwhile(err); tries++ {
		err = setupConsumersOnce(ctx, js, f, c)
	}
	return err
}

// setupConsumersOnce is one attempt of setupConsumers. First it removes the consumers that serve lanes in the other way:
// the one for all lanes, or those for one lane each.
func setupConsumersOnce(ctx context.Context, js jetstream.JetStream, f Feed, c Config) error {
	s, err := js.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}

	existing, err := consumerNames(ctx, s)
	if err != nil {
		return err
	}
	if err := removeOtherSplit(ctx, s, f, c, existing); err != nil {
		return err
	}

	// Create or update the feed's consumers.
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(wire.Lanes)
	for _, cc := range f.consumerConfigs(c) {
		g.Go(func() error {
			isClustered := js.Conn().ConnectedClusterName() != ""
			if err := setupConsumer(ctx, s, cc, existing[cc.Durable], isClustered); err != nil {
				return fmt.Errorf("consumer %s: %w", cc.Durable, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// removeOtherSplit removes those existing consumers of a feed that serve lanes in the way that c does not ask for: the
// one for all lanes, or those for one lane each.
func removeOtherSplit(ctx context.Context, s jetstream.Stream, f Feed, c Config, existing map[string]bool) error {
	isNeeded := map[string]bool{}
	for _, cc := range f.consumerConfigs(c) {
		isNeeded[cc.Durable] = true
	}
	otherSplit := c
	otherSplit.OneConsumer = !c.OneConsumer
	for _, cc := range f.consumerConfigs(otherSplit) {
		if existing[cc.Durable] && !isNeeded[cc.Durable] {
			err := s.DeleteConsumer(ctx, cc.Durable)
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
	}
	return nil
}

// setupConsumer creates a consumer of a stream, or updates it if it exists. If its state has to move between files and
// memory, moveConsumer removes it, and it is created again behind the messages that it has acknowledged.
func setupConsumer(ctx context.Context, s jetstream.Stream, config jetstream.ConsumerConfig, exists, isClustered bool) error {
	var existing jetstream.Consumer
	err := error(jetstream.ErrConsumerNotFound) // unless it is found
	if exists {
		existing, err = findConsumer(ctx, s, config.Durable, isClustered)
	}

	apply, isMoved := s.CreateConsumer, false // isMoved: it was removed and is created again
	if err == nil {
		// An existing consumer began somewhere, which an update may not change.
		current := existing.CachedInfo().Config
		config.DeliverPolicy = current.DeliverPolicy
		config.OptStartSeq = current.OptStartSeq
		config.OptStartTime = current.OptStartTime
		apply = s.UpdateConsumer
		if config.MemoryStorage != current.MemoryStorage {
			apply, isMoved = s.CreateConsumer, true
			err = moveConsumer(ctx, s, existing.CachedInfo(), &config)
		}
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	return placeConsumer(ctx, isMoved, func(ctx context.Context) error {
		_, err := apply(ctx, config)
		return err
	})
}

// consumerNames returns the names of the consumers of a stream, as a set.
func consumerNames(ctx context.Context, s jetstream.Stream) (map[string]bool, error) {
	list := s.ConsumerNames(ctx)
	names := map[string]bool{}
	for name := range list.Name() {
		names[name] = true
	}
	return names, list.Err()
}

// findConsumer returns a consumer of a stream. In a cluster it asks again while the consumer has no leader: a server
// that is about to have the consumer answers too, as if nothing had been acknowledged.
func findConsumer(ctx context.Context, s jetstream.Stream, name string, isClustered bool) (jetstream.Consumer, error) {
	for until := time.Now().Add(leaderPatience); ; {
		var c jetstream.Consumer
		err := untilAnswered(ctx, func(ctx context.Context) (err error) {
			c, err = s.Consumer(ctx, name)
			return err
		})
		if err != nil || !isClustered {
			return c, err
		}
		switch cluster := c.CachedInfo().Cluster; {
		case cluster != nil && cluster.Leader != "":
			return c, nil
		case time.Now().After(until):
			return nil, fmt.Errorf("it has had no leader for %v", leaderPatience)
		}
		if bus.Pause(ctx, leaderPause); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// placeConsumer calls place, which makes or changes a consumer. It calls place again if a cluster has no leader, or has no
// servers for the consumer (codeNoResources): a consumer takes hardly any room, so the cluster has not heard of its servers
// yet. If isMoved, the consumer was just removed, and the server may say for a while that it exists. placeConsumer goes on
// when ctx ends, lest a removed consumer and its acknowledgements are lost.
func placeConsumer(ctx context.Context, isMoved bool, place func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderPatience)
	defer cancel()
	for began := time.Now(); ; {
		err := untilAnswered(ctx, place)
		isRemoving := isMoved && errors.Is(err, jetstream.ErrConsumerExists) && time.Since(began) < peerPatience
		mayPass := isUnavailable(err) || isRefusal(err, codeNoResources, "") || isRemoving
		if !mayPass {
			return err
		}
		if bus.Pause(ctx, leaderPause); ctx.Err() != nil {
			return err
		}
	}
}

// moveConsumer removes a consumer that is to have another storage. It changes cc, the configuration with which the
// caller creates the consumer again, so that it begins behind the acknowledged messages. jetstream.ErrConsumerNotFound
// is no failure: the removal was repeated because the answer to it was lost.
func moveConsumer(ctx context.Context, s jetstream.Stream, current *jetstream.ConsumerInfo, cc *jetstream.ConsumerConfig) error {
	cc.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
	cc.OptStartSeq = current.AckFloor.Stream + 1
	cc.OptStartTime = nil
	return untilAnswered(context.WithoutCancel(ctx), func(ctx context.Context) error { return s.DeleteConsumer(ctx, cc.Durable) })
}

// untilAnswered sends a request by calling ask, and sends it again if no answer comes within answerPatience: the leader may
// change while it is asked, and then nobody answers. The request has to be one that may be repeated. untilAnswered gives
// up after leaderPatience.
func untilAnswered(ctx context.Context, ask func(context.Context) error) error {
	for deadline := time.Now().Add(leaderPatience); ; {
		attemptCtx, cancel := context.WithTimeout(ctx, answerPatience)
		err := ask(attemptCtx)
		cancel()
		switch isUnanswered := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; {
		case isUnanswered && time.Now().After(deadline):
			return fmt.Errorf("no answer has come for %v: %w", leaderPatience, err)
		case !isUnanswered:
			return err
		}
	}
}
