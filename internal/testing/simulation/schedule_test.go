package simulation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// faultTime is the longest virtual time for which a schedule has faults. They end earlier when all jobs are answered and nothing is
	// under way: no message waits for a worker, its acknowledgement or its time.
	faultTime = 8 * time.Second
	// quietTime is the virtual time at the end of a schedule in which nobody may answer again.
	quietTime = 500 * time.Millisecond
	// answerTime is the longest that a job may take after the last fault: twice the time that the client library waits for the
	// acknowledgement of an object's chunk, and some more.
	answerTime = 5 * time.Minute
	// hosts is the number of processes, each with workers of all stages.
	hosts = 2
)

// settings are the workers' settings. How often a message may be tried bounds faults, and nothing here is meant to reach that.
var settings = service.Config{Drain: time.Second, Settings: workers.Settings{
	ChunkFlops: 1, Threads: 1, SweepAfter: 3 * time.Second, Options: hop.Options{MaxDeliveries: 1000},
}}

// rates are the probabilities of the faults of a schedule, for each event that they can happen to, and two options.
type rates struct {
	lose    float64 // a message is not stored, or not delivered
	silent  float64 // a message is stored, and its publisher gets no acknowledgement
	refuse  float64 // the stream is full
	twice   float64 // a message is delivered twice
	loseAck float64 // a worker's acknowledgement is lost
	crash   float64 // a host ends, and another starts in its place
	cut     float64 // all connections are cut
	vanish  float64 // a stored message that can be made again vanishes
	forge   float64 // somebody writes another message over a stored one; all messages are signed then
	stale   float64 // a read is from a replica that lags, in a cluster
	jump    float64 // the hosts' clocks jump, that of the server does not

	isSmall bool // messages have at most 8 KiB: large payloads go in pieces and as objects
	isSwept bool // a sweeper looks after jobs: without it, all that is stored must still be answered
}

// schedule is one run of the pipeline with the faults of a seed.
type schedule struct {
	seed uint64
	rates
	began         time.Time
	script        func(memlog.Event) memlog.Fate // decides the fates instead of the seed; nil: none
	maxDeliveries int                            // of a message; 0: as in settings

	mu         sync.Mutex
	hasFaults  bool
	counts     map[string]int // how often each event has happened
	lines      []line         // the transcript
	server     *memlog.Server
	template   *memlog.Server // one whose streams are set up, to copy; nil: the schedule sets its own up
	connection *nats.Conn     // of the clients
	client     *client.Client
	keys       string // the file of keys; "": nothing is signed
	hosts      [hosts]*host
	actions    []func()      // to be done soon, outside of the server's mutex
	wake       chan struct{} // tells that there are actions
	calm       chan struct{} // is closed when the faults are to end
}

// line is a line of a transcript.
type line struct {
	time time.Duration // since the schedule began
	text string
	fate memlog.Fate
}

// transcript returns the transcript as text: the time, the event and its fate, a line each.
func (s *schedule) transcript() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, l := range s.lines {
		fmt.Fprintf(&b, "%9.3f %s", l.time.Seconds(), l.text)
		for _, fault := range []struct {
			happened bool
			text     string
		}{
			{l.fate.Lose, " lost"}, {l.fate.Silent, " untold"}, {l.fate.Refuse, " full"}, {l.fate.Twice, " twice"},
		} {
			if fault.happened {
				b.WriteString(fault.text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// host is one process with workers of all stages.
type host struct {
	nc   *nats.Conn
	stop context.CancelFunc
	done chan struct{} // closed when the workers have ended
}

// cluster returns the name of the server's cluster, or "" if it is in none. Reads may be stale in a cluster only.
func (s *schedule) cluster() string {
	if s.stale > 0 {
		return "simulated"
	}
	return ""
}

// kinds has the names of kinds of events in transcripts.
var kinds = map[memlog.Kind]string{memlog.Stored: "store", memlog.Delivered: "deliver", memlog.Acknowledged: "settle", memlog.Read: "read"}

// happens decides whether a fault with this probability happens to an event. key is a hash of the event, so the decision is the same in
// every run.
func happens(key uint64, fault string, probability float64) bool {
	return probability > 0 && number(key, fault) < probability
}

// number returns a number in [0, 1) that follows from the hash of an event and a name.
func number(key uint64, name string) float64 {
	return float64(hash(key, name)>>11) / (1 << 53)
}

// hash returns a hash of a text and an earlier hash h: FNV-1a (Fowler, Noll, Vo), mixed as in splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
func hash(h uint64, text string) uint64 {
	h ^= 0xcbf29ce484222325
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// fate decides what happens to an event at the server, by the script or by the seed, and writes it to the transcript. The decision depends
// on the seed, the event, and how often that event has happened before.
func (s *schedule) fate(e memlog.Event) memlog.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := kinds[e.Kind] + " " + e.Stream + " " + e.Consumer + " " + e.Subject
	s.counts[text]++
	text += " " + strconv.Itoa(s.counts[text])
	var f memlog.Fate
	if s.script != nil {
		f = s.script(e)
	} else if s.hasFaults {
		key := hash(s.seed, text)
		f = s.messageFate(e.Kind, key)
		text += s.startFaults(e, key)
	}
	if e.Kind != memlog.Read || f.Lose {
		s.lines = append(s.lines, line{time.Since(s.began), text, f})
	}
	return f
}

// messageFate decides what happens to the message of an event of this kind and hash: whether it, its acknowledgement or a read of it is
// lost, and so on.
func (s *schedule) messageFate(kind memlog.Kind, key uint64) (f memlog.Fate) {
	switch kind {
	case memlog.Stored:
		f.Lose = happens(key, "lose", s.lose)
		f.Silent = happens(key, "silent", s.silent)
		f.Refuse = happens(key, "refuse", s.refuse)
	case memlog.Delivered:
		f.Lose = happens(key, "lose", s.lose)
		f.Twice = happens(key, "twice", s.twice)
	case memlog.Acknowledged:
		f.Lose = happens(key, "lose", s.loseAck)
	case memlog.Read:
		f.Lose = happens(key, "lose", s.stale)
	}
	return f
}

// startFaults decides which other faults an event of this hash starts, has them done soon, and returns a text about them: a host crashes,
// the message vanishes or is written over, clocks jump, connections are cut. The caller holds s.mu.
func (s *schedule) startFaults(e memlog.Event, key uint64) (text string) {
	if happens(key, "crash", s.crash) {
		i := int(number(key, "who") * hosts)
		s.doSoon(func() { s.crashHost(i) })
		text += fmt.Sprint(" ✗ host ", i)
	}
	isStoredNow := e.Kind == memlog.Stored || e.Kind == memlog.Delivered
	if isStoredNow && s.mayVanish(e.Stream) && happens(key, "vanish", s.vanish) {
		s.doSoon(func() { s.purge(e.Stream, e.Subject) })
		text += " ✗ message"
	}
	if e.Kind == memlog.Stored && s.mayVanish(e.Stream) && happens(key, "forge", s.forge) {
		s.doSoon(func() { s.connection.Publish(e.Subject, []byte{0x80}) })
		text += " ✗ forged"
	}
	if happens(key, "jump", s.jump) {
		jump := time.Duration((2*number(key, "by") - 1) * float64(maxJump))
		clockOffset.Add(int64(jump))
		text += fmt.Sprint(" ✗ clocks ", jump)
	}
	if happens(key, "cut", s.cut) {
		s.doSoon(s.server.Cut)
		text += " ✗ connections"
	}
	return text
}

// mayVanish reports whether a stream has only messages that the pipeline makes again. If messages are small, BTN_BLOB has parts of the
// jobs' requests as well, which nobody can make again.
func (s *schedule) mayVanish(stream string) bool {
	return isRemade[stream] && !(s.isSmall && stream == "BTN_BLOB")
}

// isRemade has the streams whose messages the pipeline makes again from the model, if the server loses them.
var isRemade = map[string]bool{"BTN_NETWORK": true, "BTN_TASK": true, "BTN_PARTIAL": true, "BTN_BLOB": true}

// maxJump is the longest time by which the hosts' clocks jump at once.
const maxJump = 30 * time.Second

// clockOffset is the time in nanoseconds by which the hosts' clocks are ahead of the server's.
var clockOffset atomic.Int64

// purge removes the messages of a subject from a stream, as if the server had lost its last writes.
func (s *schedule) purge(stream, subject string) {
	s.connection.Publish("$JS.API.STREAM.PURGE."+stream, fmt.Appendf(nil, `{"filter":%q}`, subject))
}

// doSoon has an action done by runActions, outside of the server's mutex, which the caller may hold. The caller holds s.mu.
func (s *schedule) doSoon(action func()) {
	s.actions = append(s.actions, action)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// note adds a line to the transcript; its arguments are those of Sprintf.
func (s *schedule) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{time: time.Since(s.began), text: fmt.Sprintf(format, args...)})
}

// dialer connects to a server in memory as if it were on another machine. The client library would wait longer for the answers of one that
// it knows to be in the process.
type dialer struct{ server *memlog.Server }

// Dial returns a new connection.
func (d dialer) Dial(string, string) (net.Conn, error) { return d.server.InProcessConn() }

// connect returns a connection to the server with this name, which reconnects for ever.
func (s *schedule) connect(name string) *nats.Conn {
	nc, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer{s.server}), nats.Name(name), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		panic(err)
	}
	return nc
}

// startHost starts host i: a connection, and workers of all stages in a goroutine.
func (s *schedule) startHost(i int) {
	ctx, stop := context.WithCancel(context.Background())
	h := &host{nc: s.connect(fmt.Sprint("host ", i)), stop: stop, done: make(chan struct{})}
	c := settings
	c.NC, c.MessageKeys = h.nc, s.keys
	if !s.isSwept {
		c.SweepAfter = -1
	}
	if s.maxDeliveries > 0 {
		c.MaxDeliveries = s.maxDeliveries
	}
	go func() {
		defer close(h.done)
		if err := service.Run(ctx, c, stage.Names()...); err != nil {
			s.note("host %d ends: %v", i, err)
		}
	}()
	s.hosts[i] = h
}

// crashHost ends host i without a word to the server, and starts another in its place.
func (s *schedule) crashHost(i int) {
	h := s.hosts[i]
	h.nc.Close() // first, so that the workers cannot say goodbye
	h.stop()
	<-h.done
	s.startHost(i)
}

// begin sets up a server and a client, starts all hosts, and lets the faults begin.
func (s *schedule) begin(ctx context.Context, t *testing.T) {
	clockOffset.Store(0)
	s.began, s.counts, s.wake, s.calm = time.Now(), map[string]int{}, make(chan struct{}, 1), make(chan struct{})

	// The server, a copy of the template if there is one.
	maxPayload := int64(0)
	if s.isSmall {
		maxPayload = 8 << 10
	}
	options := memlog.Options{Fate: s.fate, MaxPayload: maxPayload, Cluster: s.cluster()}
	if s.template == nil {
		s.server = memlog.New(options)
	} else {
		s.server = s.template.Fresh(options)
	}

	// The client, with a key if messages are forged.
	if s.forge > 0 {
		s.keys = filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(s.keys, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.connection = s.connect("client")
	var err error
	if s.client, err = client.New(s.connection, client.Options{MessageKeys: s.keys}); err != nil {
		t.Fatal(err)
	}
	if s.template == nil {
		if err := streams.Setup(ctx, s.connection, streams.Config{InMemory: true, OneConsumer: true}); err != nil {
			t.Fatal(err)
		}
	}

	for i := range s.hosts {
		s.startHost(i)
	}
	s.hasFaults = true
}

// end ends all hosts, the clients' connection and the server.
func (s *schedule) end() {
	for _, h := range s.hosts {
		h.stop()
	}
	for _, h := range s.hosts {
		<-h.done
		h.nc.Close()
	}
	s.connection.Close()
	s.server.Close()
}

// run runs a schedule with one to three jobs and returns its violations.
func (s *schedule) run(t *testing.T) (violations []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	s.begin(ctx, t)
	ended := make(chan struct{})
	go s.runActions(ctx, ended)

	// Count the announcements of answers.
	answers := map[string]int{}
	sub, err := s.connection.Subscribe(wire.DoneSubject("*"), func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answers[m.Subject]++
	})
	if err != nil {
		t.Fatal(err)
	}

	// Run the jobs, each from a random time on, some with a deadline, some cancelled after a while.
	r := rand.New(rand.NewPCG(s.seed, 3))
	var jobs sync.WaitGroup
	var mu sync.Mutex
	for i := range 1 + r.IntN(3) {
		choices := examples()
		if !s.isSmall {
			choices = choices[1:] // without the large one
		}
		chosen := choices[r.IntN(len(choices))]
		request := chosen.request
		request.Job, request.Tenant = fmt.Sprint("job-", i), fmt.Sprint("tenant-", r.IntN(2))
		if r.IntN(4) == 0 {
			request.DeadlineMS = 200 + r.Int64N(4000)
		}
		cancelAfter := time.Duration(0)
		if r.IntN(4) == 0 {
			cancelAfter = time.Duration(r.IntN(2500)) * time.Millisecond
		}
		delay := time.Duration(r.IntN(1500)) * time.Millisecond
		jobs.Go(func() {
			time.Sleep(delay)
			if err := s.runJob(ctx, request, cancelAfter, chosen.want); err != nil {
				mu.Lock()
				defer mu.Unlock()
				violations = append(violations, request.Job+": "+err.Error())
			}
		})
	}
	jobs.Wait()

	// End the faults, and wait until nothing is under way.
	s.waitIdle(faultTime)
	close(s.calm)
	<-ended
	s.waitIdle(faultTime + answerTime)
	time.Sleep(quietTime)

	// Look for work that is left and for second answers.
	violations = append(violations, s.unfinished(ctx, s.connection)...)
	s.mu.Lock()
	for subject, n := range answers {
		if n > 1 {
			violations = append(violations, fmt.Sprint(subject, " was answered ", n, " times"))
		}
	}
	s.mu.Unlock()

	sub.Unsubscribe()
	s.end()
	return violations
}

// waitIdle waits until no message is under way, or until this time has passed since the schedule began. Without a sweeper, messages for it
// do not count, since nobody reads them.
func (s *schedule) waitIdle(limit time.Duration) {
	unread := "sweep"
	if s.isSwept {
		unread = ""
	}
	for !s.server.Idle(unread) && time.Since(s.began) < limit {
		time.Sleep(quietTime / 5)
	}
}

// runActions does the actions of doSoon until the faults end: after faultTime, when s.calm is closed, or with ctx. Then it closes ended.
func (s *schedule) runActions(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	faultsOver := time.NewTimer(faultTime)
	defer faultsOver.Stop()
	for {
		s.mu.Lock()
		actions := s.actions
		s.actions = nil
		s.mu.Unlock()
		for _, do := range actions {
			do()
		}
		select {
		case <-s.wake:
			continue
		case <-faultsOver.C:
		case <-s.calm:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.hasFaults = false
		s.mu.Unlock()
		s.note("no more faults")
		return
	}
}

// runJob submits a job until it is accepted, cancels it after a time if that is not 0, waits for its answer, and returns an error if the
// answer breaks a promise: it does not come in time, is of another job, or is not that of infer.Run.
func (s *schedule) runJob(ctx context.Context, w wire.Request, cancelAfter time.Duration, want []query.Result) error {
	// Submit.
	c := s.client
	for {
		_, err := c.Submit(ctx, w)
		if err == nil {
			break
		}
		if time.Since(s.began) > faultTime+answerTime {
			return fmt.Errorf("not accepted: %w", err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	s.note("%s is accepted", w.Job)

	// Cancel. If that returns an error, the job may be cancelled all the same.
	mayBeCancelled := cancelAfter > 0
	if cancelAfter > 0 {
		time.Sleep(cancelAfter)
		if err := c.Cancel(ctx, w.Job, "not needed"); err == nil {
			s.note("%s is cancelled", w.Job)
		}
	}

	// Wait for the answer.
	waitCtx, stop := context.WithTimeout(ctx, max(0, faultTime-time.Since(s.began))+answerTime)
	defer stop()
	for {
		a, err := c.Wait(waitCtx, w.Job)
		switch {
		case err != nil && waitCtx.Err() == nil:
			time.Sleep(300 * time.Millisecond) // a connection that was cut
			continue
		case err != nil:
			return fmt.Errorf("no answer: %w", err)
		case a.Tenant != w.Tenant || a.Job != w.Job:
			return fmt.Errorf("an answer of job %s, tenant %s", a.Job, a.Tenant)
		case a.Status == wire.StatusCancelled && mayBeCancelled:
			return nil
		case w.DeadlineMS > 0:
			return checkDeadlineAnswer(a, want)
		case a.Status != wire.StatusOK:
			return fmt.Errorf("status %s: %+v", a.Status, a.Error)
		case comparableJSON(a.Results) != comparableJSON(want):
			return fmt.Errorf("got\n%s\nwant\n%s", comparableJSON(a.Results), comparableJSON(want))
		}
		return nil
	}
}

// checkDeadlineAnswer returns an error if the answer of a job with a deadline breaks a promise. It may have estimates, or no results; but
// an ln Z that is called exact must be right.
func checkDeadlineAnswer(a *wire.Answer, want []query.Result) error {
	const rounding = 1e-9 // nats
	for i, r := range a.Results {
		if r.Exact && math.Abs(*r.LogZ-*want[i].LogZ) > rounding {
			return fmt.Errorf("query %d: ln Z is %v, and %v is called exact", i, *want[i].LogZ, *r.LogZ)
		}
	}
	if a.Status != wire.StatusOK && a.Status != wire.StatusDeadline {
		return fmt.Errorf("status %s: %+v", a.Status, a.Error)
	}
	return nil
}

// unfinished returns the violations of a schedule that has ended: messages left in the queues of work after answerTime, and stored jobs
// that have no answer.
func (s *schedule) unfinished(ctx context.Context, nc *nats.Conn) (violations []string) {
	js, err := jetstream.New(nc)
	if err != nil {
		return []string{err.Error()}
	}

	// Queues of work.
	for _, name := range []string{"BTN_NETWORK", "BTN_TASK"} {
		st, err := js.Stream(ctx, name)
		if err != nil {
			violations = append(violations, err.Error())
			continue
		}
		for end := time.Now().Add(answerTime); st.CachedInfo().State.Msgs > 0 && time.Now().Before(end); {
			time.Sleep(time.Second)
			if _, err := st.Info(ctx); err != nil {
				violations = append(violations, err.Error())
			}
		}
		if n := st.CachedInfo().State.Msgs; n > 0 {
			violations = append(violations, fmt.Sprint(name, " has ", n, " messages left"))
		}
	}

	// Stored jobs: the last part of a subject of BTN_MODEL is the name of a job.
	models, err := js.Stream(ctx, "BTN_MODEL")
	if err != nil {
		return append(violations, err.Error())
	}
	info, err := models.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return append(violations, err.Error())
	}
	answers, err := js.Stream(ctx, "BTN_ANSWER")
	if err != nil {
		return append(violations, err.Error())
	}
	for subject := range info.State.Subjects {
		job := subject[strings.LastIndexByte(subject, '.')+1:]
		if _, err := answers.GetLastMsgForSubject(ctx, wire.AnswerSubject(job)); err != nil && !errors.Is(err, context.Canceled) {
			violations = append(violations, fmt.Sprint(job, " is stored and has no answer: ", err))
		}
	}
	return violations
}

// comparableJSON returns results as JSON, without the fields that differ from run to run.
func comparableJSON(results []query.Result) string {
	out := make([]query.Result, len(results))
	for i, r := range results {
		r.Job, r.TimingsMS, r.Cache = "", nil, ""
		out[i] = r
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// ratesOf draws the rates of the schedule of a seed: each fault has its usual rate, or none, half or three times of it; some kinds of
// faults are in few schedules only.
func ratesOf(seed uint64) rates {
	r := rand.New(rand.NewPCG(seed, 5))
	rates := rates{lose: 0.03, silent: 0.03, refuse: 0.02, twice: 0.03, loseAck: 0.05, crash: 0.01, cut: 0.005}
	for _, rate := range []*float64{
		&rates.lose, &rates.silent, &rates.refuse, &rates.twice, &rates.loseAck, &rates.crash, &rates.cut,
	} {
		*rate *= []float64{0, 0.5, 1, 3}[r.IntN(4)]
	}
	if rates.isSwept = r.IntN(2) == 0; rates.isSwept {
		rates.vanish = []float64{0, 0, 0.05}[r.IntN(3)]
		rates.forge = []float64{0, 0, 0.05}[r.IntN(3)]
	}
	rates.isSmall = r.IntN(8) == 0
	rates.stale = []float64{0, 0, 0, 0.1}[r.IntN(4)]
	rates.jump = []float64{0, 0, 0, 0.01}[r.IntN(4)]
	return rates
}

// outcome is the result of the schedule of a seed.
type outcome struct {
	seed       uint64
	violations []string
	*schedule
}

// simulate runs the schedules of seeds one after the other in one bubble, and calls report with the outcome of each.
func simulate(t *testing.T, seeds []uint64, report func(outcome)) {
	hasSmall := slices.ContainsFunc(seeds, func(seed uint64) bool { return ratesOf(seed).isSmall })
	runInBubble(t, hasSmall, func(t *testing.T) {
		// Servers whose streams are set up, by the options that the setup depends on.
		templates := map[[2]bool]*memlog.Server{}
		for _, seed := range seeds {
			s := &schedule{seed: seed, rates: ratesOf(seed)}
			kind := [2]bool{s.isSmall, s.stale > 0}
			s.template = templates[kind]
			report(outcome{seed, s.run(t), s})
			templates[kind] = s.server
		}
	})
}

// runInBubble runs f in virtual time, in a bubble of testing/synctest. hasObjects says that clients put objects: then a goroutine of the
// client library may wait for ever (nats.go 1.55, newAsyncReply and CleanupPublisher), and the panic that says so is ignored.
func runInBubble(t *testing.T, hasObjects bool, f func(t *testing.T)) {
	// The client library keeps timers in a pool. Two collections empty it, so that it has none of another clock.
	for range 2 {
		runtime.GC()
	}
	defer func() {
		p := recover()
		isBlocked := strings.Contains(fmt.Sprint(p), "blocked goroutines remain")
		if p != nil && !(hasObjects && isBlocked) {
			panic(p)
		}
	}()
	synctest.Test(t, f)
}
