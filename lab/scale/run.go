package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Sample is what was seen in one second.
type Sample struct {
	Seconds float64 // since the begin
	Backlog float64 // the metric, in seconds of work; NaN where it could not be had
	Wanted  int     // replicas
	Running int     // processes, those that drain among them
}

// Run is a run of the autoscaler.
type Run struct {
	Policy  Policy
	Metrics string                                   // URL
	Start   func(ctx context.Context) *exec.Cmd      // a replica; SIGTERM ends it
	Done    func(s Sample, since time.Duration) bool // is called every second with the sample and for how long it has been at its least
	every   time.Duration                            // of a sample; 0: a second
}

// replica is a process.
type replica struct {
	cmd   *exec.Cmd
	ended chan error
	asked bool // to end
}

// Play starts and ends replicas until Done says so, or ctx ends, and then ends them all. A replica that ends by itself, or not in
// good order, is an error.
func (r Run) Play(ctx context.Context) (samples []Sample, err error) {
	if r.every == 0 {
		r.every = time.Second
	}
	a := Autoscaler{Policy: r.Policy}
	var list []*replica
	defer func() {
		for _, p := range list {
			p.end()
		}
		for _, p := range list {
			if e := <-p.ended; e != nil && !terminated(e) && err == nil {
				err = fmt.Errorf("scale: a replica ended with %w", e)
			}
		}
	}()

	began, least := time.Now(), time.Now()
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		now := time.Now()
		backlog, known := r.metric(ctx)
		wanted := a.Step(now, backlog, known)
		if wanted > r.Policy.Least || !known || backlog > r.Policy.Activation {
			least = now
		}
		if list, err = reap(list); err != nil {
			return samples, err
		}
		if list, err = r.adapt(ctx, list, wanted); err != nil {
			return samples, err
		}
		s := Sample{now.Sub(began).Seconds(), backlog, wanted, len(list)}
		samples = append(samples, s)
		if r.Done(s, now.Sub(least)) {
			return samples, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return samples, ctx.Err()
		}
	}
}

// reap leaves out the replicas that have ended as they were asked to.
func reap(list []*replica) (left []*replica, err error) {
	for _, p := range list {
		select {
		case e := <-p.ended:
			if e != nil && !terminated(e) || !p.asked {
				p.ended <- nil
				return list, fmt.Errorf("scale: a replica ended: %v", p.cmd.ProcessState)
			}
		default:
			left = append(left, p)
		}
	}
	return left, nil
}

// terminated reports whether a process ended by the signal that asks it to: it had not begun to listen.
func terminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// adapt starts replicas, or asks the youngest to end, until as many as wanted are left.
func (r Run) adapt(ctx context.Context, list []*replica, wanted int) ([]*replica, error) {
	staying := 0
	for _, p := range list {
		if !p.asked {
			staying++
		}
	}
	for ; staying < wanted; staying++ {
		p := &replica{cmd: r.Start(context.WithoutCancel(ctx)), ended: make(chan error, 1)}
		if err := p.cmd.Start(); err != nil {
			return list, fmt.Errorf("scale: %w", err)
		}
		go func() { p.ended <- p.cmd.Wait() }()
		list = append(list, p)
	}
	for i := len(list) - 1; i >= 0 && staying > wanted; i-- {
		if !list[i].asked {
			list[i].end()
			staying--
		}
	}
	return list, nil
}

func (p *replica) end() {
	if !p.asked {
		p.asked = true
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// metric asks for the value.
func (r Run) metric(ctx context.Context) (value float64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Metrics, nil)
	if err != nil {
		return nan, false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nan, false
	}
	defer answer.Body.Close()
	return find(answer.Body, r.Policy.Metric)
}

// find reads a metric out of the exposition format.
func find(text io.Reader, name string) (value float64, known bool) {
	for lines := bufio.NewScanner(text); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), name+" ")
		if !ok {
			continue
		}
		if value, err := strconv.ParseFloat(strings.Fields(rest)[0], 64); err == nil {
			return value, true
		}
	}
	return nan, false
}
