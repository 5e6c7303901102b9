package service_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// mixed has contract-workers of two numeric kinds: this processor's, and one whose values are twice
// as large, so that a sum over both kinds is neither's.
type mixed struct {
	*rig
	config config
	models []infer.Request
	want   map[string][]string // by kind: the answers of the models
	wires  []wire.Request
}

const mixedTasks = 6

func double(values []btn.UnitValue) {
	for i := range values {
		values[i].Value.Z.Exp++
	}
}

func newMixed(t *testing.T) *mixed {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	m := &mixed{config: quick, want: map[string][]string{}} // each job is learned: they do not come all at once
	m.config.AckWait = 2 * time.Second
	m.config.Heartbeat = 250 * time.Millisecond
	m.config.SweepAfter = time.Second
	m.config.ChunkFlops = 1 // a task per component
	m.rig = overReal(t, m.config)
	t.Cleanup(func() {
		if s, err := m.js.Stream(context.Background(), "BTN_TASK"); err == nil && t.Failed() {
			info, err := s.Info(context.Background(), jetstream.WithSubjectFilter(">"))
			t.Logf("tasks %+v %v", info, err)
			if c, err := s.Consumer(context.Background(), laneConsumer("contract")); err == nil {
				t.Logf("consumer %+v", c.CachedInfo())
			}
		}
	})

	settings := query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: mixedTasks}
	for seed := range uint64(4) {
		w, p := request(t, "model", grid(t, 2, 2, seed), settings)
		m.models = append(m.models, p)
		m.wires = append(m.wires, w)
		inProcess, err := infer.Run(m.ctx, p)
		m.must(err)
		as := m.inProcess(p, func([]btn.UnitValue) {})
		if as != plain(t, inProcess) {
			t.Fatal("the stages, one after the other, do not compute what infer.Run does")
		}
		twice := m.inProcess(p, double)
		if as == twice {
			t.Fatal("both kinds have the same answer")
		}
		m.want["one"] = append(m.want["one"], as)
		m.want["two"] = append(m.want["two"], twice)
	}
	return m
}

// inProcess is the answer of the stages in this process, on a processor whose values are rounded so.
func (m *mixed) inProcess(p infer.Request, round func([]btn.UnitValue)) string {
	m.t.Helper()
	net, err := stage.Reparameterise(m.ctx, p.Model, p.Settings)
	m.must(err)
	job, err := stage.Learn(m.ctx, net, p.Queries, p.Settings, nil, nil)
	m.must(err)
	var units []btn.Unit
	chunks, _ := stage.Chunks(net, job)
	for _, c := range chunks {
		units = append(units, c...)
	}
	if len(units) != mixedTasks {
		m.t.Fatalf("%d components, want %d", len(units), mixedTasks)
	}
	values, err := stage.Contract(m.ctx, net, job, stage.Demands(net, p.Queries), units, stage.ContractOptions{})
	m.must(err)
	round(values)
	return plain(m.t, stage.Aggregate(p.Job, job, values))
}

// worker starts contract-workers of a kind, which hold values of the components from one on until their channel is closed.
func (m *mixed) worker(kind string, from int, held <-chan struct{}) (stop, kill func()) {
	return m.run(m.config.WithArithmetic(&workers.Arithmetic{Kind: kind, Round: func(values []btn.UnitValue) {
		if values[0].Part >= from {
			<-held
		}
		if kind == "two" {
			double(values)
		}
	}}), query.StageContract)
}

// heard waits until so many contract-workers have said that they are there since it was called.
func (m *mixed) heard(count int) {
	m.t.Helper()
	s, err := m.nc.SubscribeSync(message.ServesSubject)
	m.must(err)
	defer s.Unsubscribe()
	processes := map[string]bool{}
	m.eventually("contract-workers say that they are there", func() bool {
		if msg, err := s.NextMsg(time.Second); err == nil {
			var said message.Serves
			m.must(wire.Decode(msg.Data, &said))
			processes[said.Process] = true
		}
		return len(processes) == count
	})
}

// submitAll submits so many jobs, each of one of the models.
func (m *mixed) submitAll(from, to int) {
	m.t.Helper()
	for i := from; i < to; i++ {
		w := m.wires[i%len(m.wires)]
		w.Job = fmt.Sprintf("job-%d", i)
		m.submit(w)
	}
}

// answered counts the answers by kind. One that has neither's bits fails the test.
func (m *mixed) answered(from, to int) map[string]int {
	m.t.Helper()
	count := map[string]int{}
	for i := from; i < to; i++ {
		a := m.wait(fmt.Sprintf("job-%d", i))
		if a.Status != wire.StatusOK {
			m.t.Errorf("job %d: %s %+v", i, a.Status, a.Error)
			continue
		}
		for k := range a.Results {
			a.Results[k].Job = "model"
		}
		got, kind := plain(m.t, a.Results), "neither"
		for name, want := range m.want {
			if got == want[i%len(m.wires)] {
				kind = name
			}
		}
		if count[kind]++; kind == "neither" {
			m.t.Errorf("job %d has the bits of neither kind: %s", i, got)
		}
	}
	return count
}

// Contract-workers of two numeric kinds serve a stage together, and every answer has the bits of one.
func TestJobsAreOfOneKind(t *testing.T) {
	for _, ones := range []int{3, 1}[:nightly.Rounds(1, 2)] {
		t.Run(fmt.Sprintf("%d to 1", ones), func(t *testing.T) {
			t.Parallel()
			m := newMixed(t)
			m.run(m.config, query.StageReparam, query.StageLearn, query.StageAggregate)
			m.worker("two", mixedTasks, nil)
			for range ones {
				m.worker("one", mixedTasks, nil)
			}
			m.heard(ones + 1)
			jobs := nightly.Rounds(100, 200)
			began := time.Now()
			m.submitAll(0, jobs)
			count := m.answered(0, jobs)
			share := float64(count["one"]) / float64(jobs)
			if want := float64(ones) / float64(ones+1); share < want-0.15 || share > want+0.15 {
				t.Errorf("%v of the jobs are of a kind with %v of the cores", share, want)
			}
			control, err := m.js.Stream(m.ctx, "BTN_CONTROL")
			m.must(err)
			tasks, err := m.js.Stream(m.ctx, "BTN_TASK")
			m.must(err)
			delivered := uint64(0)
			if c, err := tasks.Consumer(m.ctx, laneConsumer("contract")); err == nil {
				delivered = c.CachedInfo().Delivered.Consumer
			}
			t.Logf("%v in %v; %d tasks, %d deliveries, %d restarts", count, time.Since(began),
				tasks.CachedInfo().State.LastSeq, delivered, control.CachedInfo().State.LastSeq)
		})
	}
}

// Where all workers of a kind die their jobs restart on another, and have one answer.
func TestAKindDies(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	m.run(m.config, query.StageReparam, query.StageLearn, query.StageAggregate)
	died := make(chan struct{})
	_, kill := m.worker("two", mixedTasks/2, died)
	m.worker("one", mixedTasks, nil)
	m.heard(2)
	const jobs = 30
	m.submitAll(0, jobs)

	// It dies with some chunks of a job computed, and others not.
	half := ""
	m.eventually("a job is half done by the kind that dies", func() bool {
		s, err := m.js.Stream(m.ctx, "BTN_PARTIAL")
		m.must(err)
		info, err := s.Info(m.ctx, jetstream.WithSubjectFilter(">"))
		m.must(err)
		chunks := map[string]int{}
		for subject := range info.State.Subjects {
			on, err := message.ParseSubject(subject)
			m.must(err)
			chunks[on.Job]++
		}
		for job, n := range chunks {
			if n < 2 || n > mixedTasks-2 {
				continue
			}
			msg, err := s.GetLastMsgForSubject(m.ctx, message.PartialSubject(wire.Lane(""), job, mixedTasks, 0))
			var p message.Partial
			if err == nil && wire.Decode(msg.Data, &p) == nil && p.NumericKind == "two" {
				half = job
				return true
			}
		}
		return false
	})
	kill()
	close(died)
	killed := time.Now()
	count := m.answered(0, jobs)
	t.Logf("%v, %v after the end of a kind; half done was %v", count, time.Since(killed), half)
	if count["one"] <= jobs/4 {
		t.Error("the other kind took nothing over")
	}

	// New jobs are its own.
	m.submitAll(jobs, jobs+8)
	if count := m.answered(jobs, jobs+8); count["one"] != 8 {
		t.Errorf("%v without workers of the other kind", count)
	}
}

// A kind that says it has nearly all cores and returns no task delays jobs by seconds, and is given no more of them: all jobs have the
// bits of the workers that do return tasks, before their deadlines.
func TestAKindThatReturnsNothing(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	m.run(m.config, query.StageReparam, query.StageLearn, query.StageAggregate)
	m.worker("one", mixedTasks, nil)
	m.heard(1)
	liar := &message.Serves{Process: "liar", Numeric: "three", Cores: 1 << 30}
	told, done := make(chan struct{}), make(chan struct{})
	defer func() { close(told); <-done }()
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			liar.Time = time.Now().UnixMilli()
			if b, err := wire.Encode(liar); err == nil {
				m.nc.PublishMsg(&nats.Msg{Subject: message.ServesSubject, Header: message.Headers(liar, "", "", ""), Data: b})
			}
			select {
			case <-told:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	m.heard(2)
	tasks, err := m.nc.SubscribeSync(message.Filter(message.KindTask))
	m.must(err)
	m.must(m.nc.Flush())

	const jobs = 12
	for i := range m.wires {
		m.wires[i].DeadlineMS = guard.Milliseconds() // longer than trialDeadline, and than any machine takes
	}
	m.submitAll(0, jobs/2)
	if count := m.answered(0, jobs/2); count["one"] != jobs/2 {
		t.Errorf("%v of %d jobs", count, jobs/2)
	}
	kinds := func(from, to int) map[string]string { // by job
		given := map[string]string{}
		for len(given) < to-from {
			msg, err := tasks.NextMsg(guard)
			m.must(err)
			on, err := message.ParseSubject(msg.Subject)
			m.must(err)
			if n, err := strconv.Atoi(strings.TrimPrefix(on.Job, "job-")); err == nil && from <= n && n < to {
				given[on.Job] = msg.Header.Get(message.HeaderKind)
			}
		}
		return given
	}
	if kind := kinds(0, 1)["job-0"]; kind != "three" {
		t.Errorf("the first job is given to %q: nothing was believed", kind)
	}
	began := time.Now()
	m.submitAll(jobs/2, jobs)
	if count := m.answered(jobs/2, jobs); count["one"] != jobs/2 {
		t.Errorf("%v of %d more jobs", count, jobs/2)
	}
	toLiar := 0
	given := kinds(jobs/2, jobs)
	for _, kind := range given {
		if kind == "three" {
			toLiar++
		}
	}
	// a doubted kind has a job now and then, as a trial
	const trialAfter = time.Minute
	if trials := 1 + int(time.Since(began)/trialAfter); toLiar > trials {
		t.Errorf("%d jobs are given to the kind that returned nothing, at most %d as trials: %v", toLiar, trials, given)
	}
}
