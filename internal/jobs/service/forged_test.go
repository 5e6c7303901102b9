package service_test

// Forgeries by a client with the right to publish everything, and without a key.

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// keyFile writes keys of 32 equal bytes into a file.
func keyFile(t testing.TB, file string, of ...byte) string {
	t.Helper()
	if file == "" {
		file = filepath.Join(t.TempDir(), "keys")
	}
	var text string
	for _, b := range of {
		text += base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) + "\n"
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	return file
}

// several is a request whose job has several chunks with one operation a task.
func several(t *testing.T, job string, m *factorgraph.Model) (wire.Request, infer.Request) {
	return request(t, job, m, query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2})
}

// forger has the messages of a job of its own, with another model, and writes them in the name of others.
type forger struct {
	r     *rig
	own   []*nats.Msg // network, tasks, partials and answer
	blobs []*nats.Msg
	keys  *seal.Keys // its own; nil: it signs nothing
	byte  bool       // it writes a single byte
}

// forgerOf has a job of the forger's run in its own pipeline, without keys.
func forgerOf(t *testing.T, r *rig) *forger {
	t.Helper()
	f := &forger{r: r}
	own := newRig(t, embedded.Options{NoRedis: true}, quick)
	var mu sync.Mutex
	last := make(chan struct{})
	_, err := own.nc.Subscribe(wire.Prefix+">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		switch message.KindOf(m.Subject) {
		case message.KindBlob:
			f.blobs = append(f.blobs, m)
		case message.KindNetwork, message.KindTask, message.KindPartial, message.KindAnswer:
			f.own = append(f.own, m)
		case message.KindDone:
			close(last)
		}
	})
	own.must(err)
	c := quick
	c.ChunkFlops = 1
	own.run(c, allStages()...)
	w, _ := several(t, "lie", grid(t, 2, 2, 99))
	own.submit(w)
	if a := own.wait("lie"); a.Status != wire.StatusOK {
		t.Fatalf("the forger's own job: %s %v", a.Status, a.Error)
	}
	<-last
	mu.Lock()
	defer mu.Unlock()
	kinds := map[message.Kind]int{}
	for _, m := range f.own {
		kinds[message.KindOf(m.Subject)]++
	}
	if kinds[message.KindPartial] < 2 || kinds[message.KindAnswer] == 0 {
		t.Fatalf("the forger has %v", kinds)
	}
	return f
}

// messages are the forger's in the name of a job, of some kinds: the whole of its work on its own model, a deadline that has passed, an
// end, a redrive and a dead letter.
func (f *forger) messages(job, digest string, kinds ...message.Kind) (forged []*nats.Msg) {
	lane := wire.Lane("")
	add := func(subject string, m wire.Message) {
		if !slices.Contains(kinds, message.KindOf(subject)) {
			return
		}
		data, err := wire.Encode(m)
		f.r.must(err)
		if f.byte {
			data = []byte{0x80}
		}
		h := nats.Header(message.Headers(m, job, digest, ""))
		if f.keys != nil {
			h[seal.Header] = []string{f.keys.Sign(subject, "", data)}
		}
		forged = append(forged, &nats.Msg{Subject: subject, Header: h, Data: data})
	}
	for _, own := range f.own {
		s, err := message.ParseSubject(own.Subject)
		f.r.must(err)
		s.Job = job
		switch s.Kind {
		case message.KindNetwork:
			var m message.Network
			f.r.must(wire.Decode(own.Data, &m))
			m.Job, m.Digest = job, digest
			add(s.String(), &m)
		case message.KindTask:
			var m message.Task
			f.r.must(wire.Decode(own.Data, &m))
			m.Job, m.Digest = job, digest
			add(s.String(), &m)
		case message.KindPartial:
			var m message.Partial
			f.r.must(wire.Decode(own.Data, &m))
			m.Job, m.Digest = job, digest
			add(s.String(), &m)
		case message.KindAnswer:
			var m wire.Answer
			f.r.must(wire.Decode(own.Data, &m))
			m.Job, m.Digest = job, digest
			for i := range m.Results {
				m.Results[i].Job = job
			}
			add(s.String(), &m)
		}
	}
	add(message.DeadlineSubject(lane, job), &wire.Deadline{Job: job, Digest: digest, Time: 1})
	failed, err := wire.Encode(&wire.Answer{
		Job: job, Digest: digest, Status: wire.StatusError, Error: &query.ErrorInfo{Code: fault.Internal, Message: "forged"},
	})
	f.r.must(err)
	add(message.EndSubject(lane, job), &message.End{Job: job, Answer: failed, Time: 1})
	add(message.RedriveSubject(lane, job), &message.Redrive{Job: job, Time: 1})
	add(message.DLQSubject("learn-worker", job), &message.DeadLetter{
		Job: job, Stage: "learn-worker", Subject: "x", Payload: wire.Digest(nil), Time: 1,
		Error: query.ErrorInfo{Code: fault.Internal, Message: "forged"},
	})
	return forged
}

// write publishes the forger's messages in the name of a job. Streams may refuse them.
func (f *forger) write(job, digest string, kinds ...message.Kind) {
	for _, m := range f.blobs {
		f.r.must(f.r.nc.PublishMsg(&nats.Msg{Subject: m.Subject, Header: plainHeader(m.Header), Data: m.Data}))
	}
	for _, m := range f.messages(job, digest, kinds...) {
		f.r.must(f.r.nc.PublishMsg(m))
	}
	f.r.must(f.r.nc.FlushTimeout(guard))
}

// plainHeader is a header without the publisher's expectation of its stream.
func plainHeader(h nats.Header) nats.Header {
	h = maps.Clone(h)
	maps.DeleteFunc(h, func(name string, _ []string) bool { return name == "Nats-Expected-Last-Subject-Sequence" })
	return h
}

// forgedOf returns the count of forged messages by kind.
func forgedOf(t *testing.T, m *metrics.Metrics) map[message.Kind]float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	of := map[message.Kind]float64{}
	for _, f := range families {
		if f.GetName() == "basetensor_forged_total" {
			for _, one := range f.GetMetric() {
				of[message.Kind(one.GetLabel()[0].GetValue())] = one.GetCounter().GetValue()
			}
		}
	}
	return of
}

// sealed is quick with keys, several chunks a job and a sweeper: messages that a forger overwrote are made again.
func sealed(t *testing.T, file string) config {
	c := quick
	c.SweepAfter = 300 * time.Millisecond
	c.ChunkFlops = 1
	c.MessageKeys = file
	c.Metrics = metrics.New()
	return c
}

// believe has the rig's client believe signed answers only.
func (r *rig) believe(file string) {
	r.t.Helper()
	believing, err := client.New(r.nc, client.Options{MessageKeys: file})
	r.must(err)
	r.client = believing
}

// With keys, a forger with the right to publish everything ends no job and changes no answer, by any kind of message in any form.
// Without them the same messages do, so it is the keys that keep the forger out.
func TestForgedBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	r := overReal(t, quick)
	f := forgerOf(t, r)
	foreign, err := seal.Open(keyFile(t, "", 66), nil)
	r.must(err)
	model := grid(t, 2, 2, 6)
	_, p := several(t, "", model)
	want, err := infer.Run(r.ctx, p)
	r.must(err)

	// one submits a job, has it forged before any worker sees it, and returns whether its answer is right.
	one := func(c config, job string, kinds ...message.Kind) bool {
		t.Helper()
		w, _ := several(t, job, model)
		digest := r.submit(w)
		f.write(job, digest, kinds...)
		if c.MessageKeys == "" && (kinds[0] == message.KindDeadline || kinds[0] == message.KindEnd) {
			stop, _ := r.run(c, query.StageAggregate) // which is first, then
			r.wait(job)
			stop()
		}
		stop, _ := r.run(c, allStages()...)
		defer stop()
		a := r.wait(job)
		want[0].Job = job
		return a.Status == wire.StatusOK && plain(t, a.Results) == plain(t, want)
	}

	alone := []message.Kind{
		message.KindNetwork, message.KindTask, message.KindPartial, message.KindAnswer, message.KindDeadline,
		message.KindEnd,
	}
	for _, kind := range alone {
		c := sealed(t, "")
		if one(c, "open-"+string(kind), kind) {
			t.Errorf("without keys a forged %s changes nothing: this test shows nothing", kind)
		}
	}

	file := keyFile(t, "", 1)
	r.believe(file)
	for _, way := range []string{"unsigned", "byte", "foreign"} {
		f.byte, f.keys = way == "byte", nil
		if way == "foreign" {
			f.keys = foreign
		}
		for _, kind := range append(alone, message.KindRedrive) {
			c := sealed(t, file)
			if !one(c, way+"-"+string(kind), kind) {
				t.Errorf("%s, %s: the answer is wrong", way, kind)
			}
			if n := forgedOf(t, c.Metrics)[kind]; n == 0 {
				t.Errorf("%s, %s: nothing was counted: %v", way, kind, forgedOf(t, c.Metrics))
			}
		}
		if c := sealed(t, file); !one(c, way, message.Internals...) {
			t.Errorf("%s, all: the answer is wrong", way)
		}
	}
	letters, err := r.client.DeadLetters(r.ctx)
	r.must(err)
	for _, l := range letters {
		if l.Error.Message == "forged" || l.Stage == "" {
			t.Errorf("a forged dead letter is shown: %+v", l)
		}
	}
	r.eventually("nothing is left between the stages", func() bool {
		return r.messages("BTN_NETWORK")+r.messages("BTN_TASK")+r.messages("BTN_CONTROL") == 0
	})
}

// Partials that were true and are overwritten before anybody sums them are made again; an answer that is stored stays, and is heard.
func TestForgedAfter(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	r := overReal(t, quick)
	f := forgerOf(t, r)
	file := keyFile(t, "", 1)
	r.believe(file)
	w, p := several(t, "over", grid(t, 2, 2, 6))
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	c := sealed(t, file)

	digest := r.submit(w)
	stop, _ := r.run(c, query.StageReparam, query.StageLearn, query.StageContract)
	r.eventually("partials", func() bool {
		return r.messages("BTN_PARTIAL") > 1 && r.messages("BTN_NETWORK")+r.messages("BTN_TASK") == 0
	})
	f.write("over", digest, message.KindPartial)
	r.run(c, query.StageAggregate)
	a := r.wait("over")
	if got, want := plain(t, a.Results), plain(t, want); got != want {
		t.Errorf("%v: got\n%s\nwant\n%s", a.Error, got, want)
	}
	if forgedOf(t, c.Metrics)[message.KindPartial] == 0 {
		t.Error("no partial was counted")
	}
	stop()

	heard := make(chan *wire.Answer, 16)
	end, err := r.client.Results(r.ctx, nil, func(_ string, a *wire.Answer, err error) {
		if err != nil {
			t.Error(err)
		}
		heard <- a
	})
	r.must(err)
	defer end()
	for _, m := range f.messages("over", digest, message.KindAnswer) {
		if _, err := r.js.PublishMsg(r.ctx, m); err == nil {
			t.Error("a second answer was stored")
		}
		m.Subject = wire.DoneSubject("over")
		r.must(r.nc.PublishMsg(m))
	}
	again, err := r.client.Answer(r.ctx, "over")
	r.must(err)
	if plain(t, again.Results) != plain(t, a.Results) {
		t.Error("the answer has changed")
	}
	// A true one, after the forged ones: nothing else was heard.
	w.Job = "next"
	r.submit(w)
	r.run(c, allStages()...)
	r.wait("next")
	if a := <-heard; a.Job != "next" {
		t.Errorf("heard the answer of job %s", a.Job)
	}
}

// A forger writes all the time, while jobs pass: every job is answered once, and right.
func TestForgedUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	r := overReal(t, calm)
	f := forgerOf(t, r)
	file := keyFile(t, "", 1)
	r.believe(file)
	model := grid(t, 2, 2, 6)
	_, p := several(t, "", model)
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	c := sealed(t, file)
	c.AckWait = calm.AckWait // no worker dies here
	r.run(c, allStages()...)
	r.run(c, allStages()...)

	jobs := nightly.Rounds(3, 10)
	var done, writing sync.WaitGroup
	over := make(chan struct{})
	for i := range jobs {
		job := fmt.Sprintf("job-%d", i)
		w, _ := several(t, job, model)
		digest := r.submit(w)
		all := f.messages(job, digest, message.Internals...)
		writing.Go(func() {
			pause := 20 * time.Millisecond // longer and longer: a busy machine is slow, and the forger must not be faster for ever
			for k := 0; ; k++ {
				select {
				case <-over:
					return
				case <-time.After(pause):
					r.nc.PublishMsg(all[k%len(all)])
				}
				pause += pause / 64
			}
		})
		done.Go(func() {
			a, err := r.client.Wait(r.ctx, job)
			if err != nil {
				t.Error(err)
				return
			}
			mine := slices.Clone(want)
			mine[0].Job = job
			if got, want := plain(t, a.Results), plain(t, mine); got != want {
				t.Errorf("%s: %s %v: got\n%s\nwant\n%s", job, a.Status, a.Error, got, want)
			}
		})
	}
	done.Wait()
	close(over)
	writing.Wait()
	if n := r.messages("BTN_ANSWER"); n != uint64(jobs) {
		t.Errorf("%d answers to %d jobs", n, jobs)
	}
	for kind, n := range forgedOf(t, c.Metrics) {
		t.Logf("%s: %v forged", kind, n)
	}
}
