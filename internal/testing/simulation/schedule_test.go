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
	// faultsFor is the longest virtual time for which a schedule has faults. They end earlier when all jobs are answered and nothing is
	// under way: no message waits for a worker, its acknowledgement or its time.
	faultsFor = 8 * time.Second
	// quiet is the virtual time after that in which nobody may answer again.
	quiet = 500 * time.Millisecond
	// answeredWithin is the longest that a job may take after the last fault: twice the time that the client library waits for the
	// acknowledgement of an object's chunk, and some more.
	answeredWithin = 5 * time.Minute
	// hosts is the number of processes, each with workers of all stages.
	hosts = 2
)

// settings are the workers' settings. How often a message may be tried bounds faults, and nothing here is meant to reach that.
var settings = service.Config{Drain: time.Second, Settings: workers.Settings{
	ChunkFlops: 1, Threads: 1, SweepAfter: 3 * time.Second, Options: hop.Options{MaxDeliveries: 1000},
}}

// rates are the probabilities of a schedule's faults, by event.
type rates struct {
	lose, silent, refuse, twice, deaf, dies, cut float64
	vanish                                       float64 // of messages that can be made again, after they were stored
	forge                                        float64 // of a message that somebody writes over a stored one; then all are signed
	stale                                        float64 // of a read from a replica that lags, in a cluster
	jumps                                        float64 // of the hosts' clocks, beside the server's
	small                                        bool    // messages of 8 KiB at most: large payloads go in pieces and as objects
	swept                                        bool    // a sweeper looks after jobs: without it, all that is stored must still be answered
}

// schedule is one run of the pipeline with the faults of a seed.
type schedule struct {
	seed uint64
	rates
	began  time.Time
	script func(memlog.Event) memlog.Fate // in place of the seed's fates; nil: none
	tries  int                            // deliveries of a message; 0: as in settings

	mu     sync.Mutex
	armed  bool
	counts map[string]int // of equal events
	lines  []line         // the transcript
	server *memlog.Server
	like   *memlog.Server // one that is set up; nil: the schedule sets its own up
	own    *nats.Conn     // of the clients
	client *client.Client
	keys   string // the file of keys; "": nothing is signed
	hosts  [hosts]*host
	due    []func() // actions to take soon, outside of the server's mutex
	wake   chan struct{}
	calm   chan struct{} // is closed when the faults are to end
}

// line is a line of a transcript.
type line struct {
	at   time.Duration // since the schedule began
	text string
	fate memlog.Fate
}

// transcript writes all lines.
func (s *schedule) transcript() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, l := range s.lines {
		fmt.Fprintf(&b, "%9.3f %s", l.at.Seconds(), l.text)
		for i, is := range []bool{l.fate.Lose, l.fate.Silent, l.fate.Refuse, l.fate.Twice} {
			if is {
				b.WriteString([]string{" lost", " untold", " full", " twice"}[i])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// host is one process of workers.
type host struct {
	nc   *nats.Conn
	stop context.CancelFunc
	done chan struct{}
}

// cluster is the name of the server's cluster, where reads may be stale.
func (s *schedule) cluster() string {
	if s.stale > 0 {
		return "simulated"
	}
	return ""
}

// kinds name the events in transcripts.
var kinds = map[memlog.Kind]string{memlog.Stored: "store", memlog.Delivered: "deliver", memlog.Acknowledged: "settle", memlog.Read: "read"}

// chance returns whether something with a probability happens to an event, of which key is a hash. It is the same in every run.
func chance(key uint64, what string, probability float64) bool {
	return probability > 0 && number(key, what) < probability
}

// number returns a number in [0, 1) that an event has for what may happen to it.
func number(key uint64, what string) float64 {
	return float64(hashed(key, what)>>11) / (1 << 53)
}

// hashed returns a hash of a text and an earlier hash: FNV-1a (Fowler, Noll, Vo), mixed as in splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
func hashed(h uint64, text string) uint64 {
	h ^= 0xcbf29ce484222325
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// fate decides about an event.
func (s *schedule) fate(e memlog.Event) memlog.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := kinds[e.Kind] + " " + e.Stream + " " + e.Consumer + " " + e.Subject
	s.counts[text]++
	text += " " + strconv.Itoa(s.counts[text])
	var f memlog.Fate
	if s.script != nil {
		f = s.script(e)
	} else if s.armed {
		key := hashed(s.seed, text)
		switch e.Kind {
		case memlog.Stored:
			f.Lose = chance(key, "lose", s.lose)
			f.Silent = chance(key, "silent", s.silent)
			f.Refuse = chance(key, "refuse", s.refuse)
		case memlog.Delivered:
			f.Lose = chance(key, "lose", s.lose)
			f.Twice = chance(key, "twice", s.twice)
		case memlog.Acknowledged:
			f.Lose = chance(key, "lose", s.deaf)
		case memlog.Read:
			f.Lose = chance(key, "lose", s.stale)
		}
		if chance(key, "crash", s.dies) {
			dies := int(number(key, "who") * hosts)
			s.soon(func() { s.crash(dies) })
			text += fmt.Sprint(" ✗ host ", dies)
		}
		if (e.Kind == memlog.Stored || e.Kind == memlog.Delivered) && s.mayVanish(e.Stream) && chance(key, "vanish", s.vanish) {
			s.soon(func() { s.purge(e.Stream, e.Subject) })
			text += " ✗ message"
		}
		if e.Kind == memlog.Stored && s.mayVanish(e.Stream) && chance(key, "forge", s.forge) {
			s.soon(func() { s.own.Publish(e.Subject, []byte{0x80}) })
			text += " ✗ forged"
		}
		if chance(key, "jump", s.jumps) {
			by := time.Duration((2*number(key, "by") - 1) * float64(farthest))
			ahead.Add(int64(by))
			text += fmt.Sprint(" ✗ clocks ", by)
		}
		if chance(key, "cut", s.cut) {
			s.soon(s.server.Cut)
			text += " ✗ connections"
		}
	}
	if e.Kind != memlog.Read || f.Lose {
		s.lines = append(s.lines, line{time.Since(s.began), text, f})
	}
	return f
}

// mayVanish reports whether messages of a stream are made again. With small messages blobs hold the jobs' own requests, too.
func (s *schedule) mayVanish(stream string) bool {
	return remade[stream] && !(s.small && stream == "BTN_BLOB")
}

// remade are the streams of messages that are made again, from the model, where the server loses them.
var remade = map[string]bool{"BTN_NETWORK": true, "BTN_TASK": true, "BTN_PARTIAL": true, "BTN_BLOB": true}

// farthest is the longest time by which the hosts' clocks jump at once, ahead by how much they are.
const farthest = 30 * time.Second

var ahead atomic.Int64

// purge removes a message, as a server does that loses its last writes.
func (s *schedule) purge(stream, subject string) {
	s.own.Publish("$JS.API.STREAM.PURGE."+stream, fmt.Appendf(nil, `{"filter":%q}`, subject))
}

// soon has something done outside of the server's mutex. The caller holds s.mu.
func (s *schedule) soon(do func()) {
	s.due = append(s.due, do)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// note adds a line to the transcript.
func (s *schedule) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{at: time.Since(s.began), text: fmt.Sprintf(format, args...)})
}

// dialer leads to a server in memory as to one that is away: answers of one in the process are waited for longer.
type dialer struct{ server *memlog.Server }

// Dial returns a new connection.
func (d dialer) Dial(string, string) (net.Conn, error) { return d.server.InProcessConn() }

// connect returns a connection to the server.
func (s *schedule) connect(name string) *nats.Conn {
	nc, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer{s.server}), nats.Name(name), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		panic(err)
	}
	return nc
}

// start starts the workers of a host.
func (s *schedule) start(i int) {
	ctx, stop := context.WithCancel(context.Background())
	h := &host{nc: s.connect(fmt.Sprint("host ", i)), stop: stop, done: make(chan struct{})}
	c := settings
	c.NC, c.MessageKeys = h.nc, s.keys
	if !s.swept {
		c.SweepAfter = -1
	}
	if s.tries > 0 {
		c.MaxDeliveries = s.tries
	}
	go func() {
		defer close(h.done)
		if err := service.Run(ctx, c, stage.Names()...); err != nil {
			s.note("host %d ends: %v", i, err)
		}
	}()
	s.hosts[i] = h
}

// crash ends a host without a word to the server, and starts another in its place.
func (s *schedule) crash(i int) {
	h := s.hosts[i]
	h.nc.Close() // from now on nobody hears of it
	h.stop()
	<-h.done
	s.start(i)
}

// begin sets up a server and starts all hosts.
func (s *schedule) begin(ctx context.Context, t *testing.T) {
	ahead.Store(0)
	s.began, s.counts, s.wake, s.calm = time.Now(), map[string]int{}, make(chan struct{}, 1), make(chan struct{})
	payload := int64(0)
	if s.small {
		payload = 8 << 10
	}
	options := memlog.Options{Fate: s.fate, MaxPayload: payload, Cluster: s.cluster()}
	if s.like == nil {
		s.server = memlog.New(options)
	} else {
		s.server = s.like.Fresh(options)
	}
	if s.forge > 0 {
		s.keys = filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(s.keys, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.own = s.connect("client")
	var err error
	if s.client, err = client.New(s.own, client.Options{MessageKeys: s.keys}); err != nil {
		t.Fatal(err)
	}
	if s.like == nil {
		if err := streams.Setup(ctx, s.own, streams.Config{InMemory: true, OneConsumer: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.hosts {
		s.start(i)
	}
	s.armed = true
}

// end ends all hosts, and the server.
func (s *schedule) end() {
	for _, h := range s.hosts {
		h.stop()
	}
	for _, h := range s.hosts {
		<-h.done
		h.nc.Close()
	}
	s.own.Close()
	s.server.Close()
}

// run runs a schedule and returns its violations.
func (s *schedule) run(t *testing.T) (wrong []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	s.begin(ctx, t)
	own := s.own
	ended := make(chan struct{})
	go s.disturb(ctx, ended)

	answers := map[string]int{}
	sub, err := own.Subscribe(wire.DoneSubject("*"), func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answers[m.Subject]++
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(s.seed, 3))
	var jobs sync.WaitGroup
	var mu sync.Mutex
	for i := range 1 + r.IntN(3) {
		all := examples()
		if !s.small {
			all = all[1:] // the first is large
		}
		one := all[r.IntN(len(all))]
		request := one.request
		request.Job, request.Tenant = fmt.Sprint("job-", i), fmt.Sprint("tenant-", r.IntN(2))
		if r.IntN(4) == 0 {
			request.DeadlineMS = 200 + r.Int64N(4000)
		}
		cancelled := time.Duration(0)
		if r.IntN(4) == 0 {
			cancelled = time.Duration(r.IntN(2500)) * time.Millisecond
		}
		late := time.Duration(r.IntN(1500)) * time.Millisecond
		jobs.Go(func() {
			time.Sleep(late)
			if err := s.job(ctx, request, cancelled, one.want); err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, request.Job+": "+err.Error())
			}
		})
	}
	jobs.Wait()
	s.settle(faultsFor)
	close(s.calm)
	<-ended
	s.settle(faultsFor + answeredWithin)
	time.Sleep(quiet)
	wrong = append(wrong, s.left(ctx, own)...)
	s.mu.Lock()
	for subject, n := range answers {
		if n > 1 {
			wrong = append(wrong, fmt.Sprint(subject, " was answered ", n, " times"))
		}
	}
	s.mu.Unlock()

	sub.Unsubscribe()
	s.end()
	return wrong
}

// settle waits until nothing is under way, or for a time since the schedule began.
func (s *schedule) settle(most time.Duration) {
	unread := "sweep"
	if s.swept {
		unread = ""
	}
	for !s.server.Idle(unread) && time.Since(s.began) < most {
		time.Sleep(quiet / 5)
	}
}

// disturb takes the due actions until the faults end.
func (s *schedule) disturb(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	over := time.NewTimer(faultsFor)
	defer over.Stop()
	for {
		s.mu.Lock()
		due := s.due
		s.due = nil
		s.mu.Unlock()
		for _, do := range due {
			do()
		}
		select {
		case <-s.wake:
			continue
		case <-over.C:
		case <-s.calm:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.armed = false
		s.mu.Unlock()
		s.note("no more faults")
		return
	}
}

// job submits a job until it is accepted, waits for its answer, and returns a violation.
func (s *schedule) job(ctx context.Context, w wire.Request, cancelled time.Duration, want []query.Result) error {
	c := s.client
	for {
		_, err := c.Submit(ctx, w)
		if err == nil {
			break
		}
		if time.Since(s.began) > faultsFor+answeredWithin {
			return fmt.Errorf("not accepted: %w", err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	s.note("%s is accepted", w.Job)
	if cancelled > 0 {
		time.Sleep(cancelled)
		if err := c.Cancel(ctx, w.Job, "not needed"); err == nil {
			s.note("%s is cancelled", w.Job)
		} else {
			cancelled = -1 // it may have been, all the same
		}
	}
	within, stop := context.WithTimeout(ctx, max(0, faultsFor-time.Since(s.began))+answeredWithin)
	defer stop()
	for {
		a, err := c.Wait(within, w.Job)
		switch {
		case err != nil && within.Err() == nil:
			time.Sleep(300 * time.Millisecond) // a connection that was cut
			continue
		case err != nil:
			return fmt.Errorf("no answer: %w", err)
		case a.Tenant != w.Tenant || a.Job != w.Job:
			return fmt.Errorf("an answer of job %s, tenant %s", a.Job, a.Tenant)
		case a.Status == wire.StatusCancelled && cancelled != 0:
			return nil
		case w.DeadlineMS > 0:
			return early(a, want)
		case a.Status != wire.StatusOK:
			return fmt.Errorf("status %s: %+v", a.Status, a.Error)
		case plain(a.Results) != plain(want):
			return fmt.Errorf("got\n%s\nwant\n%s", plain(a.Results), plain(want))
		}
		return nil
	}
}

// early returns a violation by the answer of a job with a deadline. It may be an estimate, or none; a number that is called exact is.
func early(a *wire.Answer, want []query.Result) error {
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

// left returns work that is left, and stored answers that are missing.
func (s *schedule) left(ctx context.Context, nc *nats.Conn) (wrong []string) {
	js, err := jetstream.New(nc)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range []string{"BTN_NETWORK", "BTN_TASK"} {
		st, err := js.Stream(ctx, name)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		for left := time.Now().Add(answeredWithin); st.CachedInfo().State.Msgs > 0 && time.Now().Before(left); {
			time.Sleep(time.Second)
			if _, err := st.Info(ctx); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
		if n := st.CachedInfo().State.Msgs; n > 0 {
			wrong = append(wrong, fmt.Sprint(name, " has ", n, " messages left"))
		}
	}
	models, err := js.Stream(ctx, "BTN_MODEL")
	if err != nil {
		return append(wrong, err.Error())
	}
	info, err := models.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return append(wrong, err.Error())
	}
	answers, err := js.Stream(ctx, "BTN_ANSWER")
	if err != nil {
		return append(wrong, err.Error())
	}
	for subject := range info.State.Subjects {
		job := subject[strings.LastIndexByte(subject, '.')+1:]
		if _, err := answers.GetLastMsgForSubject(ctx, wire.AnswerSubject(job)); err != nil && !errors.Is(err, context.Canceled) {
			wrong = append(wrong, fmt.Sprint(job, " is stored and has no answer: ", err))
		}
	}
	return wrong
}

// plain writes results without the fields that differ from run to run.
func plain(results []query.Result) string {
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

// ratesOf returns the rates of a seed: some schedules have one kind of fault, some all, some many.
func ratesOf(seed uint64) rates {
	r := rand.New(rand.NewPCG(seed, 5))
	all := rates{lose: 0.03, silent: 0.03, refuse: 0.02, twice: 0.03, deaf: 0.05, dies: 0.01, cut: 0.005}
	for _, one := range []*float64{&all.lose, &all.silent, &all.refuse, &all.twice, &all.deaf, &all.dies, &all.cut} {
		*one *= []float64{0, 0.5, 1, 3}[r.IntN(4)]
	}
	if all.swept = r.IntN(2) == 0; all.swept {
		all.vanish = []float64{0, 0, 0.05}[r.IntN(3)]
		all.forge = []float64{0, 0, 0.05}[r.IntN(3)]
	}
	all.small = r.IntN(8) == 0
	all.stale = []float64{0, 0, 0, 0.1}[r.IntN(4)]
	all.jumps = []float64{0, 0, 0, 0.01}[r.IntN(4)]
	return all
}

// outcome is what became of a seed's schedule.
type outcome struct {
	seed  uint64
	wrong []string // violations
	*schedule
}

// simulate runs the schedules of seeds one after the other in one bubble, and tells of each.
func simulate(t *testing.T, seeds []uint64, tell func(outcome)) {
	small := slices.ContainsFunc(seeds, func(seed uint64) bool { return ratesOf(seed).small })
	bubble(t, small, func(t *testing.T) {
		like := map[[2]bool]*memlog.Server{} // by what its setup depends on
		for _, seed := range seeds {
			s := &schedule{seed: seed, rates: ratesOf(seed)}
			kind := [2]bool{s.small, s.stale > 0}
			s.like = like[kind]
			tell(outcome{seed, s.run(t), s})
			like[kind] = s.server
		}
	})
}

// bubble runs f in virtual time.
func bubble(t *testing.T, objects bool, f func(t *testing.T)) {
	for range 2 { // the client library keeps timers in a pool, which must not have one of another clock
		runtime.GC()
	}
	defer func() {
		// Putting an object starts a goroutine of the client library that may wait for ever (nats.go 1.55, newAsyncReply and CleanupPublisher).
		if p := recover(); p != nil && !(objects && strings.Contains(fmt.Sprint(p), "blocked goroutines remain")) {
			panic(p)
		}
	}()
	synctest.Test(t, f)
}
