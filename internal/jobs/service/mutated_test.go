package service_test

// Every message stored under a job ends in an answer: messages of every kind, with mutated headers and payloads.

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// mutations is the number of mutated messages without BTN_MUTATIONS. The seed of each is its number, from
// BTN_MUTATIONS_FROM on. At most outstanding of their jobs are under way, and a good job passes after every goodEvery
// of them.
const (
	mutations   = 400
	outstanding = 2000
	goodEvery   = 200
)

// sample is a genuine message of a job, with an id and a digest of fixed length.
type sample struct {
	kind message.Kind
	*nats.Msg
}

// specimen is a job whose messages are samples.
type specimen struct {
	id      string
	request wire.Request
	samples []sample
}

// of returns a text or payload of a specimen with another job's id and digest, which are as long.
func (s *specimen) of(id string, data []byte) []byte {
	own, other := s.request, s.request
	other.Job = id
	a, _ := own.Digest()
	b, _ := other.Digest()
	return bytes.ReplaceAll(bytes.ReplaceAll(data, []byte(s.id), []byte(id)), []byte(a), []byte(b))
}

// sampled runs a job and returns it with a message of each kind, as it was published.
func (r *rig) sampled(id string, queries int) *specimen {
	r.t.Helper()
	evidence := make([]query.Query, queries)
	for i := range evidence {
		evidence[i] = query.Query{Evidence: observe(i % 2), Marginals: true}
	}
	body, err := wire.NewModel(grid(r.t, 3, 3, uint64(queries)))
	r.must(err)
	s := &specimen{id: id, request: wire.Request{Job: id, Model: body, Queries: evidence, DeadlineMS: time.Hour.Milliseconds()}}

	heard := make(chan *nats.Msg, 1000)
	sub, err := r.nc.ChanSubscribe(wire.Prefix+">", heard)
	r.must(err)
	r.must(r.nc.Flush())
	r.submit(s.request)
	if a := r.wait(id); a.Status != wire.StatusOK {
		r.t.Fatal(a.Status, a.Error)
	}
	r.must(sub.Unsubscribe())

	digest, _ := s.request.Digest()
	failed := &wire.Answer{Job: id, Digest: digest, Status: wire.StatusError, Error: &query.ErrorInfo{Code: "internal", Message: "x"}}
	answer, err := wire.Encode(failed)
	r.must(err)
	now := time.Now().UnixMilli()
	for subject, m := range map[string]wire.Message{
		message.RedriveSubject(wire.Lane(""), id):  &message.Redrive{Job: id, Time: now},
		message.EndSubject(wire.Lane(""), id):      &message.End{Job: id, Answer: answer, Time: now},
		wire.CancelSubject(id):                     &wire.Cancel{Job: id, Time: now},
		message.DeadlineSubject(wire.Lane(""), id): &wire.Deadline{Job: id, Digest: digest, Time: 1},
		message.DLQSubject(query.StageReparam, id): &message.DeadLetter{
			Stage: query.StageReparam, Job: id, Subject: "x", Time: now, Deliveries: 1, Payload: digest, Error: *failed.Error,
		},
	} {
		b, err := wire.Encode(m)
		r.must(err)
		heard <- &nats.Msg{Subject: subject, Header: message.Headers(m, id, digest, ""), Data: b}
	}
	close(heard)

	seen := map[string]bool{}
	for m := range heard {
		kind := message.KindOf(m.Subject)
		if seen[m.Subject] || !strings.Contains(m.Subject, id) || kind == message.KindDone || kind == message.KindProgress {
			continue
		}
		seen[m.Subject] = true
		maps.DeleteFunc(m.Header, func(name string, _ []string) bool {
			return strings.HasPrefix(name, "Nats-Expected") || name == "Nats-Msg-Id"
		})
		s.samples = append(s.samples, sample{kind, m})
	}
	slices.SortFunc(s.samples, func(a, b sample) int { return strings.Compare(a.Subject, b.Subject) })
	return s
}

// headerNames are header names of this program, of the server, and of the client library.
var headerNames = []string{
	"Btn-Blob", "Btn-Pieces", "Btn-Stored", "Btn-Spare", "Btn-Begin", "Btn-Passed", "Btn-Status", message.HeaderWork,
	message.HeaderCost, message.HeaderKind, wire.HeaderContentType, wire.HeaderSchema, wire.HeaderSchemaVersion, wire.HeaderJob,
	wire.HeaderDigest, wire.HeaderTenant, "traceparent", "Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp",
	"Nats-Num-Pending", "Nats-Last-Sequence", "Status", "Description", "Nats-Pending-Messages", "Nats-Schedule", "Nats-TTL",
}

// headerValues are values of a wrong type, or of a wrong size.
var headerValues = []string{
	"", "x", "0", "-1", "1", "404", "503", "9223372036854775807", "1e308", "NaN", ">", "*", "btn.v1.model.0.other", "a b", "\t",
	strings.Repeat("0", 64), strings.Repeat("f", 64), strings.Repeat("z", 3000), "2001-01-01T00:00:00Z", "é\x00\xff",
}

// mutate changes a header or the payload of a message.
func mutate(rng *rand.Rand, m *nats.Msg) {
	name := headerNames[rng.IntN(len(headerNames))]
	if own := slices.Sorted(maps.Keys(m.Header)); len(own) > 0 && rng.IntN(2) == 0 {
		name = own[rng.IntN(len(own))]
	}
	value := headerValues[rng.IntN(len(headerValues))]
	at := rng.IntN(len(m.Data) + 1)
	switch rng.IntN(11) {
	case 0:
		delete(m.Header, name)
	case 1:
		m.Header[name] = append(m.Header[name], append(slices.Clone(m.Header[name]), value)...)
	case 2:
		m.Header[name] = []string{""}
	case 3:
		m.Header[name] = []string{strings.Join(m.Header[name], "") + strings.Repeat("x", 1+rng.IntN(5000))}
	case 4, 5:
		m.Header[name] = []string{value}
	case 6:
		m.Data = m.Data[:at]
	case 7, 8: // some bits
		for range 1 + rng.IntN(3) {
			if len(m.Data) > 0 {
				m.Data[rng.IntN(len(m.Data))] ^= 1 << rng.IntN(8)
			}
		}
	case 9: // an array, a text or a number of another size
		m.Data = slices.Insert(m.Data, at, []byte{0xdd, 0xff, 0xff, 0xff, 0xc0, 0xcb, 0x81, 0xa1}[rng.IntN(8)])
	case 10: // a digit
		for range 20 {
			if k := rng.IntN(len(m.Data) + 1); k < len(m.Data) && m.Data[k] < 0x80 {
				m.Data[k] = byte(rng.IntN(0x80))
				break
			}
		}
	}
}

// TestMutatedMessagesEnd stores a mutated message of a job before the job, so that it takes the place of the genuine
// one. Every job is answered, nothing stays in a queue, and the stages go on to answer good jobs.
func TestMutatedMessagesEnd(t *testing.T) {
	from, cases := number(t, "BTN_MUTATIONS_FROM", 0), number(t, "BTN_MUTATIONS", mutations)
	c := calm
	c.SweepAfter, c.ChunkFlops = 300*time.Millisecond, 1
	r := newRig(t, embedded.Options{NoRedis: true}, c)
	// A changed bit makes a budget of hours, which is answered after hours: limits refuse it.
	limits := filepath.Join(t.TempDir(), "tenants.json")
	r.must(os.WriteFile(limits, []byte(`{"classes": {"default": {"flops_per_job": 1e9}}}`), 0o600))
	var err error
	c.Tenants, err = admission.Open(limits, logger())
	r.must(err)
	r.ctx = t.Context() // without the time limit of guard
	r.run(c, allStages()...)
	specimens := []*specimen{r.sampled("specimen-1", 1), r.sampled("specimen-3", 3)}
	kinds := map[message.Kind]int{}
	m := mutants{rig: r, specimens: specimens, kinds: kinds, open: map[string]string{}, done: make(chan *nats.Msg, 1<<16)}
	_, err = r.nc.ChanSubscribe(wire.DoneSubject("*"), m.done)
	r.must(err)
	t.Cleanup(func() {
		for id, what := range m.open {
			t.Logf("no answer: %s: %s", id, what)
		}
	})
	for k := from; k < from+cases; k++ {
		m.store(uint64(k))
		if k%goodEvery == 0 {
			m.good()
		}
		if m.settle(outstanding); len(m.open) == outstanding {
			m.settle(outstanding / 2)
		}
	}
	m.settle(0)
	m.good()
	r.eventually("nothing waits any more", func() bool {
		return r.messages("BTN_NETWORK") == 0 && r.messages("BTN_TASK") == 0 && r.messages("BTN_CONTROL") == 0 && r.stands() == ""
	})
	t.Logf("%d cases, %d refused by the server, %v", cases, m.refused, kinds)
	for _, kind := range []message.Kind{
		message.KindModel, message.KindNetwork, message.KindTask, message.KindPartial, message.KindAnswer, message.KindCancel,
		message.KindRedrive, message.KindEnd, message.KindDeadline, message.KindTimer, message.KindDLQ, message.KindBlob,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no message of kind %s was mutated", kind)
		}
	}
}

// number returns the number in an environment variable, or its default.
func number(t *testing.T, name string, unless int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unless
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(name, ": ", err)
	}
	return n
}

// mutants stores mutated messages and waits for the answers of their jobs.
type mutants struct {
	*rig
	specimens []*specimen
	kinds     map[message.Kind]int
	done      chan *nats.Msg
	open      map[string]string // mutated messages, by jobs without an answer
	refused   int               // messages that no stream took
	goods     int
}

// store stores one mutated message, and the model of its job.
func (m *mutants) store(seed uint64) {
	m.t.Helper()
	rng := rand.New(rand.NewPCG(seed, 27))
	s := m.specimens[rng.IntN(len(m.specimens))]
	id := fmt.Sprintf("m%09d", seed)
	put := func(of *nats.Msg, change bool) {
		msg := &nats.Msg{
			Subject: string(s.of(id, []byte(of.Subject))), Header: nats.Header{}, Data: s.of(id, of.Data),
		}
		for name, values := range of.Header {
			for _, v := range values {
				msg.Header.Add(name, string(s.of(id, []byte(v))))
			}
		}
		if change {
			mutate(rng, msg)
			m.open[id] = fmt.Sprintf("%s %.300q %d bytes", msg.Subject, msg.Header, len(msg.Data))
		}
		for {
			_, err := m.js.PublishMsg(m.ctx, msg, jetstream.WithRetryAttempts(0))
			var refusal *jetstream.APIError
			switch {
			case err == nil:
			case errors.As(err, &refusal) && refusal.ErrorCode == 10077 && strings.Contains(refusal.Description, "maximum bytes"):
				time.Sleep(10 * time.Millisecond) // until there is room
				continue
			case change:
				m.refused++
			default:
				m.t.Fatalf("%s: %v", msg.Subject, err)
			}
			return
		}
	}

	model := s.samples[slices.IndexFunc(s.samples, func(s sample) bool { return s.kind == message.KindModel })]
	switch k := rng.IntN(len(s.samples) + 1); {
	case k == len(s.samples): // the request as a blob
		m.kinds[message.KindBlob]++
		payload := s.of(id, model.Data)
		digest := wire.Digest(payload)
		put(&nats.Msg{Subject: message.BlobSubject("", digest), Header: nats.Header{}, Data: payload}, true)
		put(&nats.Msg{Subject: model.Subject, Header: nats.Header{"Btn-Blob": {digest}}, Data: []byte(digest)}, false)
	case s.samples[k].kind == message.KindModel:
		m.kinds[message.KindModel]++
		before := m.refused
		if put(model.Msg, true); m.refused > before {
			delete(m.open, id)
		}
	default:
		m.kinds[s.samples[k].kind]++
		put(s.samples[k].Msg, true)
		put(model.Msg, false)
	}
}

// settle waits until at most so many jobs have no answer. It hears most answers, and looks for the others every second.
func (m *mutants) settle(most int) {
	m.t.Helper()
	var looked time.Time
	began := time.Now()
	m.eventually(fmt.Sprintf("the answers of all but %d jobs", most), func() bool {
		for len(m.done) > 0 {
			answer := <-m.done
			m.take(strings.TrimPrefix(answer.Subject, wire.DoneSubject("")), answer.Data)
		}
		if len(m.open) > most && time.Since(looked) > time.Second {
			m.look()
			looked = time.Now()
		}
		if time.Since(began) > guard {
			m.t.Fatalf("%d jobs have no answer%s", len(m.open), m.stands())
		}
		return len(m.open) <= most
	})
}

// look looks for the answers of all jobs that have none.
func (m *mutants) look() {
	m.t.Helper()
	b, err := bus.New(m.nc, bus.Options{})
	m.must(err)
	for id := range m.open {
		stored, err := b.Log.GetRaw(m.ctx, bus.StreamAnswer, wire.AnswerSubject(id))
		if !errors.Is(err, bus.ErrNotFound) {
			m.must(err)
			m.take(id, stored.Data)
		}
	}
}

// take takes an answer, unless the data is none.
func (m *mutants) take(id string, data []byte) {
	var a wire.Answer
	if wire.Decode(data, &a) == nil {
		delete(m.open, id)
	}
}

// good passes a job that nothing is wrong with, and compares its answer.
func (m *mutants) good() {
	m.t.Helper()
	m.goods++
	w, p := request(m.t, fmt.Sprint("good-", m.goods), grid(m.t, 3, 3, uint64(m.goods)), query.Settings{}, observe(0), observe(1))
	want, err := infer.Run(m.ctx, p)
	m.must(err)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // until there is room
		if _, err = m.client.Submit(m.ctx, w); !errors.Is(err, client.ErrFull) || time.Since(began) > guard {
			break
		}
	}
	m.must(err)
	if a := m.wait(w.Job); a.Status != wire.StatusOK || plain(m.t, a.Results) != plain(m.t, want) {
		m.t.Fatalf("a good job: %s %v", a.Status, a.Error)
	}
}
