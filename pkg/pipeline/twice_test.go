package pipeline_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/metrics"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/internal/workers"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/wire"
)

// conflicts is how often an output differed from an earlier one of the same work.
func conflicts(t *testing.T, m *metrics.Metrics) (n float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "basetensor_conflicts_total" {
			for _, c := range f.GetMetric() {
				n += c.GetCounter().GetValue()
			}
		}
	}
	return n
}

// Every stage may run twice on the same input: nothing changes, and nothing is found to differ.
func TestEveryStageTwice(t *testing.T) {
	r := newRig(t, embedded.Options{}, quick)
	_, p := request(
		t, "twice", grid(t, 3, 3, 6),
		btn.Settings{Method: btn.MethodSymmetryCP, Sweeps: 2, Starts: 1},
	)
	want, err := infer.Run(r.ctx, p, nil)
	r.must(err)
	w, _ := request(t, "twice", p.Model, p.Settings)
	c := quick
	c.Metrics = metrics.New()
	stop, _ := r.run(c, pipeline.StageReparam)
	r.submit(w)
	r.eventually("a network", func() bool { return r.messages("BTN_NETWORK") == 1 })
	lane := wire.Lane("")
	again := &message.Redrive{Job: "twice"}
	r.send(message.RedriveSubject(lane, "twice"), again) // its network is still there
	r.eventually("the redrive is done", func() bool { return r.messages("BTN_CONTROL") == 0 })
	stop()
	s, err := r.js.Stream(r.ctx, "BTN_NETWORK")
	r.must(err)
	network, err := s.GetLastMsgForSubject(r.ctx, message.NetworkSubject(lane, "twice"))
	r.must(err)

	stop, _ = r.run(c, pipeline.StageLearn)
	r.eventually(
		"a task",
		func() bool { return r.messages("BTN_TASK") == 1 && r.messages("BTN_NETWORK") == 0 },
	)
	// learned again, out of the cache this time, while its task is still there
	r.publish(network.Subject, network.Data)
	r.eventually(
		"the network is learned again", func() bool { return r.messages("BTN_NETWORK") == 0 },
	)
	stop()

	r.run(c, pipeline.Stages()...)
	first := plain(t, r.wait("twice").Results)
	if want := plain(t, want); first != want {
		t.Errorf("got\n%s\nwant\n%s", first, want)
	}
	r.publish(network.Subject, network.Data)
	r.send(message.RedriveSubject(lane, "twice"), again)
	r.eventually("all is disposed of", func() bool {
		return r.messages("BTN_NETWORK")+r.messages("BTN_TASK")+r.messages("BTN_CONTROL") == 0
	})
	if last := plain(t, r.wait("twice").Results); last != first {
		t.Errorf("the answer changed from\n%s\nto\n%s", first, last)
	}
	if n := conflicts(t, c.Metrics); n != 0 {
		t.Errorf("%v outputs differed", n)
	}
	if n := r.messages("BTN_DLQ"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// Chunks of one job may name two plans if these differ in whether they were remembered, and in
// nothing else.
func TestPlansOfOneJob(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, pipeline.StageContract, pipeline.StageAggregate)
	for job, change := range map[string]func(*btn.Assignment){
		"remembered": func(a *btn.Assignment) { a.Cache = "hit" },
		"different":  func(a *btn.Assignment) { a.Plan.Estimates[0].Alpha[0] = a.Plan.Estimates[0].Alpha[0].Neg() },
	} {
		_, p := request(
			t, job, grid(t, 2, 2, 1),
			btn.Settings{Method: btn.MethodSymmetryCP, Components: 2, Sweeps: 2, Starts: 1},
		)
		tasks, want := r.tasks(p)
		if len(tasks) != 2 {
			t.Fatalf("%d tasks, want 2", len(tasks))
		}
		net, err := stage.Reparameterise(context.Background(), p.Model, p.Settings)
		r.must(err)
		assignments, err := stage.Learn(r.ctx, net, p.Queries, p.Settings, nil)
		r.must(err)
		change(&assignments[0])
		b, err := message.EncodeAssignments(assignments)
		r.must(err)
		tasks[1].JobBlob = wire.Digest(b)
		r.js.Publish(r.ctx, wire.BlobSubject(tasks[1].JobBlob), b)
		for k, m := range tasks {
			r.send(message.TaskSubject(0, job, 2, k), m)
		}
		if job == "different" {
			r.failed(job, wire.StatusError, fault.Unsupported, workers.ErrPlans.Error())
			continue
		}
		if got, want := plain(t, r.wait(job).Results), plain(t, want); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
