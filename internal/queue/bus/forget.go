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
	Jobs     int    // jobs that had a message
	Messages uint64 // messages of all streams
}

// keptKinds are the kinds of messages that each stream holds. Kinds that begin or continue a job come first, so that
// Forget stops a job before it erases the job's results.
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

// Forget erases a tenant's data in the streams: everything of the jobs that the tenant owns, and its blobs and models. Of
// the jobs without an owner it erases those whose request, answer or dead letter names the tenant.
//
// Work that is under way stores a little more, so call Forget again a minute later. Blobs of networks and plans, which
// jobs of all tenants share, go when nobody uses them. Forget fetches the request of every job without an owner in the
// tenant's lane, and every answer of such jobs.
func (l *Log) Forget(ctx context.Context, tenant string) (f Forgotten, err error) {
	if l.conn.tenant != "" {
		return f, fault.New(fault.BadInput, "bus: to erase a tenant's data takes the operator's user")
	}
	if tenant == "" {
		return f, fault.New(fault.BadInput, "bus: no tenant is named")
	}
	jobs := map[string]bool{}
	unowned, err := l.unownedJobsNaming(ctx, tenant)
	if err != nil {
		return f, err
	}

	// Erase kind by kind what the tenant owns, and what belongs to the jobs without an owner.
	for _, group := range keptKinds {
		for _, kind := range group.kinds {
			filters := []string{message.OwnerFilter(kind, tenant)}
			for _, job := range slices.Sorted(maps.Keys(unowned)) {
				filters = append(filters, message.JobFilter(kind, wire.Lane(tenant), job))
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

// erase removes the messages of a stream that match a filter, and returns their numbers by subject. It does nothing if
// filter is "".
func (l *Log) erase(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	if filter == "" {
		return nil, nil
	}
	subjects, err := l.Subjects(ctx, stream, filter)
	if err != nil || len(subjects) == 0 {
		return nil, err
	}
	return subjects, l.Purge(ctx, stream, filter, 0) // 0: whatever their sequences are
}

// unownedJobsNaming returns the jobs without an owner whose request, answer or dead letter names a tenant in its
// header.
func (l *Log) unownedJobsNaming(ctx context.Context, tenant string) (map[string]bool, error) {
	jobs := map[string]bool{}
	for _, place := range []struct{ stream, filter string }{
		{StreamModel, wire.ModelSubject(wire.Lane(tenant), "*")},
		{StreamAnswer, wire.AnswerSubject("*")},
		{StreamDead, message.DLQSubject("*", "*")},
	} {
		subjects, err := l.Subjects(ctx, place.stream, place.filter)
		if err != nil {
			return nil, err
		}
		for subject := range subjects {
			m, err := l.GetRaw(ctx, place.stream, subject)
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
