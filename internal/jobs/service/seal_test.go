package service_test

// Keys that change, deadlines that are signed for later, entries of the cache.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
)

// A timer delivers its deadline signed. A copy of it that comes earlier ends nothing, nor does an unsigned timer that a client sets when
// a worker has set its own.
func TestSignedDeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	r := overReal(t, quick)
	file := keyFile(t, "", 1)
	c := sealed(t, file)
	w, _ := request(t, "late", grid(t, 2, 2, 1), query.Settings{})
	w.DeadlineMS = time.Hour.Milliseconds()
	r.submit(w)
	timer := func(job string) *nats.Msg {
		t.Helper()
		s, err := r.js.Stream(r.ctx, bus.StreamDeadline)
		r.must(err)
		m, err := s.GetLastMsgForSubject(r.ctx, message.TimerSubject(wire.Lane(""), job))
		if err != nil {
			return nil
		}
		return &nats.Msg{Subject: message.DeadlineSubject(wire.Lane(""), job), Header: m.Header, Data: m.Data}
	}
	if timer("late").Header.Get(seal.Header) != "" {
		t.Error("a client without keys signs")
	}
	stop, _ := r.run(c, query.StageReparam)
	r.eventually("a worker's timer", func() bool { return timer("late").Header.Get(seal.Header) != "" })

	// the client's, late: the worker's stays
	other, err := bus.New(r.nc, bus.Options{})
	r.must(err)
	var d wire.Deadline
	r.must(wire.Decode(timer("late").Data, &d))
	mac := timer("late").Header.Get(seal.Header)
	d.Time++
	r.must(other.Log.SetFirstTimer(r.ctx, wire.Lane(""), &d))
	if timer("late").Header.Get(seal.Header) != mac {
		t.Error("a client has replaced a worker's timer")
	}
	stop()

	// a copy of the timer's message, at once
	copied := timer("late")
	copied.Header = nats.Header{seal.Header: {mac}}
	_, err = r.js.PublishMsg(r.ctx, copied)
	r.must(err)
	stop, _ = r.run(c, query.StageAggregate)
	r.eventually("the copy is counted", func() bool { return forgedOf(t, c.Metrics)[message.KindDeadline] >= 1 })
	if a, err := r.client.Answer(r.ctx, "late"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("the job was ended: %+v, %v", a, err)
	}
	r.eventually("the copy is gone", func() bool { return !strings.Contains(r.stands(), "BTN_DEADLINE") })
	stop()
	refused := forgedOf(t, c.Metrics)[message.KindDeadline] // on a busy machine the copy may have come again

	// one in its time, with nobody to contract
	w.Job, w.DeadlineMS = "soon", 15_000 // by then a worker, which is there before the job, has signed the timer
	r.believe(file)
	r.run(c, query.StageReparam, query.StageAggregate)
	r.submit(w)
	if a := r.wait("soon"); a.Status != wire.StatusDeadline {
		t.Errorf("status %s, %v", a.Status, a.Error)
	}
	if n := forgedOf(t, c.Metrics)[message.KindDeadline]; n != refused {
		t.Errorf("%v deadlines were refused, %v of them copies", n, refused)
	}
}

// Keys are changed while jobs pass: the new one is added, then put first, then the old one is removed when its last signed message has
// passed. No message is refused, and every answer is believed when it comes.
func TestKeysRotateUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	r := overReal(t, calm)
	file := keyFile(t, "", 1)
	r.believe(file)
	c := sealed(t, file)
	// A late look at an old job rejects messages signed with the old key, and a busy machine is late.
	c.AckWait, c.SweepAfter = calm.AckWait, time.Minute
	r.run(c, allStages()...)
	r.run(c, allStages()...)
	model := grid(t, 2, 2, 6)
	_, p := several(t, "", model)
	want, err := infer.Run(r.ctx, p)
	r.must(err)

	signedBy := func(job string, of byte) bool {
		keys, err := seal.Open(keyFile(t, "", of), nil)
		r.must(err)
		s, err := r.js.Stream(r.ctx, bus.StreamAnswer)
		r.must(err)
		m, err := s.GetLastMsgForSubject(r.ctx, wire.AnswerSubject(job))
		r.must(err)
		return keys.Verify(m.Header.Get(seal.Header), m.Subject, "", m.Data)
	}
	next := 0
	one := func() string {
		t.Helper()
		job := fmt.Sprintf("job-%d", next)
		next++
		w, _ := several(t, job, model)
		r.submit(w)
		return job
	}
	check := func(job string) {
		a := r.wait(job)
		mine := slices.Clone(want)
		mine[0].Job = job
		if got, want := plain(t, a.Results), plain(t, mine); got != want {
			t.Errorf("%s: %s %v: got\n%s\nwant\n%s", job, a.Status, a.Error, got, want)
		}
	}

	// pass has several jobs on their way at a time, until one is answered with the key.
	pass := func(of byte) {
		t.Helper()
		var ahead []string
		for last := ""; last == "" || !signedBy(last, of); {
			for len(ahead) < 8 {
				ahead = append(ahead, one())
			}
			last = ahead[0]
			check(last)
			ahead = ahead[1:]
		}
		for _, job := range ahead {
			check(job)
		}
	}
	pass(1)
	keyFile(t, file, 1, 2)
	for range 8 {
		check(one())
	}
	keyFile(t, file, 2, 1)
	pass(2)
	// The clocks of two processes may differ by a second; messages of the old key have passed when all sign with the new one.
	r.eventually("all sign with the new key", func() bool {
		job := one()
		check(job)
		return signedBy(job, 2)
	})
	time.Sleep(1100 * time.Millisecond) // the least time between two looks at the file
	r.eventually("what the old key signed has been taken", func() bool {
		for line := range strings.Lines(r.stands()) {
			if strings.Contains(line, "BTN_") && !strings.Contains(line, "BTN_MODEL sweep") {
				return false
			}
		}
		return r.messages("BTN_NETWORK") == 0 && r.messages("BTN_TASK") == 0
	})
	for kind, n := range forgedOf(t, c.Metrics) {
		if n != 0 {
			t.Errorf("%v messages of kind %s were refused while both keys were there", n, kind)
		}
	}
	keyFile(t, file, 2)
	for range 20 {
		check(one())
	}
	for kind, n := range forgedOf(t, c.Metrics) {
		// An aggregator that takes a lane over reads old partials again, and looks for the answers of their jobs.
		if n != 0 && kind != message.KindPartial && kind != message.KindAnswer {
			t.Errorf("%v messages of kind %s were refused", n, kind)
		}
	}
	keyFile(t, file, 3)
	r.eventually("an answer of a key that is gone is not believed", func() bool { // the client looks at the file once a second
		_, err := r.client.Answer(r.ctx, "job-0")
		return errors.Is(err, client.ErrNotFound)
	})
}

// An entry of the cache that was sealed with another key or none is not taken, and changes no answer.
func TestForgedCacheEntry(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers")
	}
	t.Parallel()
	r := overReal(t, quick)
	server := testserver.Redis(t, testserver.RedisOptions{})
	file := keyFile(t, "", 1)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer raw.Close()
	model, other := grid(t, 2, 2, 6), grid(t, 2, 2, 99)
	_, p := several(t, "", model)
	want, err := infer.Run(r.ctx, p)
	r.must(err)

	// run answers a job of one model with a fresh process, whose cache is all in Redis.
	n := 0
	run := func(c config, lie bool) *wire.Answer {
		t.Helper()
		n++
		of := model
		if lie {
			of = other
		}
		w, _ := several(t, fmt.Sprintf("job-%d", n), of)
		stop, _ := r.run(c, allStages()...)
		defer stop()
		r.submit(w)
		return r.wait(w.Job)
	}
	decomposition := func() (string, bool) {
		keys, err := raw.Keys(r.ctx, "btn:v1:decomposition:*").Result()
		r.must(err)
		keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":lock") }) // of a worker that computes
		return fmt.Sprint(keys), len(keys) == 1
	}
	learn := func(c config, lie bool) (key string, value []byte) {
		t.Helper()
		for {
			r.must(raw.FlushAll(r.ctx).Err())
			run(c, lie)
			if text, ok := decomposition(); ok {
				key = text[1 : len(text)-1]
				break
			}
			r.must(r.ctx.Err())
		}
		keys, err := seal.Open(file, nil)
		r.must(err)
		store, err := cache.Open(server.URL, cache.Options{Timeout: guard, Secrets: func() [][]byte { return append(keys.Secrets(), nil) }})
		r.must(err)
		defer store.Close()
		value, ok := store.Get(r.ctx, key)
		if !ok {
			t.Fatalf("%s is not sealed by the key", key)
		}
		return key, value
	}
	c := sealed(t, file)
	c.Redis, c.RedisTimeout = server.URL, guard
	open := sealed(t, "")
	open.Redis, open.RedisTimeout = server.URL, guard
	_, lie := learn(open, true)
	openKey, _ := learn(open, false)
	right := func(a *wire.Answer) bool {
		want[0].Job = a.Job
		return a.Status == wire.StatusOK && plain(t, a.Results) == plain(t, want)
	}
	put := func(key string, o cache.Options) {
		t.Helper()
		r.must(raw.FlushAll(r.ctx).Err())
		o.Timeout = guard
		forger, err := cache.Open(server.URL, o)
		r.must(err)
		defer forger.Close()
		forger.Put(r.ctx, key, lie)
	}

	put(openKey, cache.Options{})
	if right(run(open, false)) {
		t.Error("without keys a forged entry changes nothing: this test shows nothing")
	}
	key, _ := learn(c, false)
	for name, o := range map[string]cache.Options{
		"no key":        {},
		"the empty key": {Secrets: func() [][]byte { return [][]byte{{}} }},
		"another key":   {Secrets: func() [][]byte { return [][]byte{make([]byte, 32)} }},
	} {
		c.Metrics = sealed(t, file).Metrics
		for corruptOf(t, c) == 0 { // Redis has a tenth of a second to give it
			if r.ctx.Err() != nil {
				t.Fatalf("%s: nothing was counted", name)
			}
			put(key, o)
			if a := run(c, false); !right(a) {
				t.Errorf("%s: %s %v", name, a.Status, a.Error)
			}
		}
	}
}

// corruptOf returns the number of cache entries that differed from the stored bytes.
func corruptOf(t *testing.T, c config) (n float64) {
	t.Helper()
	families, err := c.Metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "basetensor_cache_failures_total" {
			for _, m := range f.GetMetric() {
				if m.GetLabel()[0].GetValue() == "corrupt" {
					n = m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
