package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Reparam turns models into networks, and answers requests for an immediate answer.
type Reparam struct {
	storedJobs
	host        *Host
	networkRoom *bus.Room // for messages in the stream of networks
}

// setUpReparam gives worker the intakes of reparam-worker, each a source of messages with their handler: models, and
// orders to start a job again.
func (h *Host) setUpReparam(worker *Worker) {
	room := bus.NewRoom(h.Bus.Conn, bus.StreamNetwork, bus.ConsumerNetwork, 4) // a quarter of the backlog of jobs
	reparam := &Reparam{storedJobs: storedJobs{worker.loop}, host: h, networkRoom: room}

	worker.intakes = []*intake{
		{
			Feed:   streams.Models,
			Intake: hop.Intake{Handler: reparam.handleModel, MeasuresCost: true},
			pull:   pull.Intake{Prefetch: 2, Slots: 4, Room: room},
		},
		{
			Feed:   streams.Redrives,
			Intake: hop.Intake{Handler: reparam.handleRedrive},
			pull:   pull.Intake{Prefetch: 1, Slots: 1},
		},
	}

	worker.background = append(worker.background, reparam.serve)
}

// handleModel turns a model into a network: model.<lane>.<job> → network.<lane>.<job>.
func (w *Reparam) handleModel(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	d.JobStored = bus.StoredAt(d.Raw.Header, d.Raw.Stored)
	if bus.WasMoved(d.Raw.Header) {
		return hop.Done, w.resumeMoved(ctx, d)
	}
	return hop.Done, w.reparameterise(ctx, d)
}

// resumeMoved handles a model that was moved to the end of its stream, because its job takes long or is to be done
// again. If the job has begun, it only sets the job's timer again, which may not have moved. Otherwise it
// reparameterises the model.
func (w *Reparam) resumeMoved(ctx context.Context, d *hop.Message) error {
	hasBegun, err := w.hasBegun(ctx, d.Subject.Lane, d.Subject.Job)
	if err != nil {
		return err
	}
	if !hasBegun {
		return w.reparameterise(ctx, d)
	}

	hasDeadline := codec.Part(d.Data, "deadline_ms") != nil // found without decoding the request, which may be large
	if !hasDeadline {
		return nil
	}
	var m wire.Request
	if err := decodeIdentified(d, &m); err != nil {
		return err
	}
	return w.setDeadline(ctx, d, m.DeadlineMS)
}

// handleRedrive starts a stored job again from its model: it makes the job's network and passes it on. It writes the
// request and its time into d, because an error becomes the job's answer from there on, and needs them.
func (w *Reparam) handleRedrive(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var r message.Redrive
	if err := d.Decode(&r); err != nil {
		return hop.Done, err
	}
	if r.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", r.Job, d.Subject.Job)
	}

	// Read the stored request.
	m, err := w.Bus.Log.GetRaw(ctx, bus.StreamModel, wire.ModelSubject(d.Subject.Lane, d.Subject.Job))
	if errors.Is(err, bus.ErrNotFound) {
		w.Log.Warn("nothing to start again: the model is gone", "job", r.Job)
		return hop.Done, nil // nobody can answer a job without its model
	}
	if err != nil {
		return hop.Done, err
	}
	d.KeepsJob = false // from here on an error ends the job
	if err := bus.CheckSum(m.Subject, m.Header, m.Data); err != nil {
		return hop.Done, err
	}
	data, err := w.Bus.Blobs.Payload(ctx, d.Subject.Owner, m.Header, m.Data)
	if bus.IsUnreadable(err) {
		err = fault.Wrap(
			fault.CodeOf(err), fmt.Errorf("pipeline: the stored request cannot be read any more: submit it again: %w", err),
		)
	}
	if err != nil {
		return hop.Done, err
	}

	d.Data = data
	d.JobStored = bus.StoredAt(m.Header, m.Time)
	return hop.Done, w.reparameterise(w.Resume(ctx, d, m.Header), d)
}

// decodeIdentified decodes the request in d.Data into m, checks that it belongs to d's subject, and writes its digest, its
// tenant, its number of queries and its description into d. The tenant of a job with an owner is that owner, whom the
// subject names, whatever the request states. The request has to be in its tenant's lane.
func decodeIdentified(d *hop.Message, m *wire.Request) error {
	if err := d.Decode(m); err != nil {
		return err
	}
	if m.Job != d.Subject.Job {
		return d.Mismatch("job", m.Job, d.Subject.Job)
	}
	digest, err := m.Digest()
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	d.Digest = digest
	d.Tenant = message.TenantOf(m.Job, m.Tenant)
	d.Queries = len(m.Queries)
	d.About = message.AboutOf(m)
	if lane := wire.Lane(d.Tenant); lane != d.Subject.Lane {
		return d.Mismatch("lane", lane, d.Subject.Lane)
	}
	return nil
}

// replayedAge is the age from which a model has probably been delivered before: a consumer that was made again begins
// with the oldest message. Most jobs of that age have their answer, so it is looked up before anything is computed.
const replayedAge = 10 * time.Second

// requestCopies is the number of copies of a request in memory while its network is made: as it came, decoded, as a
// network, and encoded again.
const requestCopies = 4

// reparameterise turns the model in d.Data into a network and passes it on. It returns hop.ErrAnswered if the job has
// its answer.
func (w *Reparam) reparameterise(ctx context.Context, d *hop.Message) error {
	var m wire.Request
	if err := decodeIdentified(d, &m); err != nil {
		return err
	}
	if err := w.admitRequest(d, &m); err != nil {
		return err
	}

	// Only a model that may have been delivered before can have its answer, so the server is not asked about others.
	isRepeated := d.Attempt > 1 || d.Subject.Kind == message.KindRedrive
	mayBeAnswered := isRepeated || bus.WasMoved(d.Raw.Header) || w.Bus.Conn.Since(d.JobStored) > replayedAge
	if mayBeAnswered {
		if err := w.CheckUnanswered(ctx, m.Job, d.Digest); err != nil {
			return err
		}
	}
	if err := w.setDeadline(ctx, d, m.DeadlineMS); err != nil {
		return err
	}

	// Make and store the network, with memory for copies of the request reserved.
	d.SetAttributes(tracing.Method.String(string(m.Settings.WithDefaults().Method)))
	release, err := w.host.memory.Hold(ctx, requestCopies*float64(len(d.Data)))
	if err != nil {
		return err
	}
	defer release()
	network, err := w.makeNetwork(ctx, d, &m, isRepeated)
	if err != nil {
		return err
	}
	w.networkRoom.TakePlaces(d.Subject.Lane, 1) // one more message will wait before learn-worker
	subject := message.NetworkSubject(d.Subject.Lane, m.Job)
	if err := w.StoreOutput(ctx, bus.StreamNetwork, subject, network, d, sameNetwork); err != nil {
		return err
	}
	w.Progress(m.Job, w.Stage, 1, 1)
	return nil
}

// makeNetwork returns the message with the network of a request. isRepeated says that the request was delivered before.
// It removes the model from m, which is no longer needed then.
func (w *Reparam) makeNetwork(ctx context.Context, d *hop.Message, m *wire.Request, isRepeated bool) (*message.Network, error) {
	began := time.Now()
	ownCache := w.host.hasOwnCache(d.Tenant)
	network, queries, err := w.prepareNetwork(ctx, cacheOwner(d.Tenant, ownCache), m, d.Data, isRepeated)
	if err != nil {
		return nil, err
	}
	out := &message.Network{
		Job:        m.Job,
		Tenant:     d.Tenant,
		Digest:     d.Digest,
		Blob:       network.Blob,
		Queries:    queries,
		Settings:   m.Settings,
		Registered: m.ModelDigest != "",
		OwnCache:   ownCache,
		Stored:     d.JobStored.UnixMilli(),
		DeadlineMS: m.DeadlineMS,
		Timings:    map[string]float64{w.Stage: milliseconds(began)},
	}
	if slices.ContainsFunc(queries, needsNames) {
		out.Names = network.Names
	}
	return out, nil
}

// needsNames reports whether the answer to a query needs the names of the model: for results about variables, and for
// the reason why evidence is impossible.
func needsNames(q query.Query) bool {
	return q.OfVariables() || len(q.Evidence.Hard)+len(q.Evidence.Soft)+len(q.Do)+len(q.Believe) > 0
}

// setDeadline sets the timer of a job that has a deadline. It returns an error if the deadline has passed. It also
// returns one if the stream of models drops messages before they are as old as the deadline: the job is kept as its
// model, and is not answered any more once that is dropped. setDeadline may be called twice, because the server keeps
// only the last message on a timer's subject.
func (w *Reparam) setDeadline(ctx context.Context, d *hop.Message, deadlineMS int64) error {
	if deadlineMS == 0 {
		return nil
	}

	s, err := w.Bus.Conn.Stream(ctx, bus.StreamModel)
	if err != nil {
		return err
	}
	if keep := s.CachedInfo().Config.MaxAge; keep > 0 && deadlineMS > keep.Milliseconds() { // 0: no limit of age
		return fault.New(fault.BadInput,
			"pipeline: a deadline of %d ms, jobs are kept for %v", deadlineMS, keep)
	}

	if err := w.CheckDeadline(d.JobStored, deadlineMS); err != nil {
		return err
	}

	return w.Bus.Log.SetTimer(ctx, d.Subject.Lane, &wire.Deadline{
		Job:    d.Subject.Job,
		Tenant: d.Tenant,
		Digest: d.Digest,
		Time:   d.JobStored.UnixMilli() + deadlineMS,
	})
}

// sameNetwork reports whether two networks are the same but for timings and times.
func sameNetwork(a, b wire.Message) bool {
	x, y := *a.(*message.Network), *b.(*message.Network) // copies
	x.Timings, y.Timings = nil, nil
	x.Stored, y.Stored = 0, 0
	return hop.SameBytes(&x, &y)
}

// milliseconds returns the time since began in milliseconds.
func milliseconds(began time.Time) float64 {
	return float64(time.Since(began)) / float64(time.Millisecond)
}
