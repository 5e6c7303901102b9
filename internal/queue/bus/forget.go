package bus

// Erasing the stored data of a tenant.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Forgotten counts the jobs and messages that Forget has erased.
type Forgotten struct {
	Jobs     int    // that were stored, with an answer or without
	Messages uint64 // of all streams
}

// keptKinds are the kinds of messages that streams hold, those that begin or go on with a job first.
var keptKinds = []struct {
	stream string
	kinds  []message.Kind
}{
	{StreamModel, []message.Kind{message.KindModel}},
	{StreamControl, []message.Kind{message.KindCancel, message.KindRedrive, message.KindEnd}},
	{StreamNetwork, []message.Kind{message.KindNetwork}},
	{StreamTask, []message.Kind{message.KindTask}},
	{StreamPartial, []message.Kind{message.KindPartial, message.KindFirst}},
	{StreamDeadline, []message.Kind{message.KindTimer, message.KindDeadline}},
	{StreamAnswer, []message.Kind{message.KindAnswer}},
	{StreamDead, []message.Kind{message.KindDLQ}},
	{StreamBlob, []message.Kind{message.KindBlob}},
	{StreamGraph, []message.Kind{message.KindGraph}},
}

// Forget erases the data of a tenant in the streams: of the jobs that it owns everything, with the
// blobs and models that are its own, and of jobs that nobody owns those whose request or answer
// names it. Work that is under way stores a little more: forget again a minute later. Blobs of
// networks and plans, which jobs of all tenants share under the digest of their bytes, go when
// nobody uses them. It takes one lookup for every job that nobody owns in the tenant's lane, and
// for every answer of such a job.
func (l *Log) Forget(ctx context.Context, tenant string) (f Forgotten, err error) {
	if l.conn.tenant != "" {
		return f, fault.New(fault.BadInput, "bus: to erase a tenant's data takes the operator's user")
	}
	if tenant == "" {
		return f, fault.New(fault.BadInput, "bus: no tenant is named")
	}
	jobs := map[string]bool{}
	open, err := l.openJobs(ctx, tenant)
	if err != nil {
		return f, err
	}

	for _, group := range keptKinds {
		for _, kind := range group.kinds {
			filters := []string{message.OwnedBy(kind, tenant)}
			for _, job := range slices.Sorted(maps.Keys(open)) {
				filters = append(filters, message.OfJob(kind, wire.Lane(tenant), job))
			}
			for _, filter := range filters {
				erased, err := l.erase(ctx, group.stream, filter)
				if err != nil {
					return f, err
				}
				for subject, n := range erased {
					f.Messages += n
					if s, err := message.ParseSubject(subject); err == nil && s.Job != "" {
						jobs[s.Job] = true
					}
				}
			}
		}
	}
	f.Jobs = len(jobs)
	return f, nil
}

// erase removes the messages of a stream that match a filter, and returns their number by subject.
func (l *Log) erase(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	if filter == "" {
		return nil, nil
	}
	subjects, err := l.Subjects(ctx, stream, filter)
	if err != nil || len(subjects) == 0 {
		return nil, err
	}
	return subjects, l.Purge(ctx, stream, filter, 0)
}

// openJobs returns the jobs that nobody owns whose request, or whose answer if the request is gone, names a tenant in its header.
func (l *Log) openJobs(ctx context.Context, tenant string) (map[string]bool, error) {
	jobs := map[string]bool{}
	for _, look := range []struct{ stream, filter string }{
		{StreamModel, wire.ModelSubject(wire.Lane(tenant), "*")},
		{StreamAnswer, wire.AnswerSubject("*")},
		{StreamDead, message.DLQSubject("*", "*")},
	} {
		subjects, err := l.Subjects(ctx, look.stream, look.filter)
		if err != nil {
			return nil, err
		}
		for subject := range subjects {
			m, err := l.GetRaw(ctx, look.stream, subject)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if m.Header.Get(wire.HeaderTenant) == tenant {
				jobs[subject[strings.LastIndexByte(subject, '.')+1:]] = true
			}
		}
	}
	return jobs, nil
}
