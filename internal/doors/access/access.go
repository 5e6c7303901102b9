// Package access defines permissions on a NATS server: those of every stage, of operators, of clients and of tenants, by subject,
// and the server's configuration with their keys.
//
// The operator is the user of the account that has the streams. Every stage, the client and every tenant is an account of its own, which
// imports its subjects and nothing else: it publishes, asks and hears only these. The server chooses the subjects of replies between
// accounts, so that no reply reaches a subject that its user may not write.
package access

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Names of the users that are no stage.
const (
	Operator = "operator" // sets streams up, replays dead letters, registers and removes models, forgets tenants: everything
	Client   = "client"   // submits jobs that nobody owns
)

// progress are the subjects of progress messages.
const progress = "progress.>"

// Role is the set of permissions of one user of the account of the streams. The server refuses
// everything else.
type Role struct {
	Name      string
	Publish   []string // subjects it may publish on
	StoredFor []string // subjects of messages that reparam-worker checks and stores for it, see message.KeepSubject
	Subscribe []string // subjects it hears, beside its own replies
	Answers   []string // subjects of requests that it answers
	Announces []string // subjects of its messages to all subscribers, other workers of its stage among them
}

// vitalRequests are the requests that a stage makes for any messages: it looks at its streams, and asks for messages.
var vitalRequests = apiRequests("STREAM.INFO.*", "CONSUMER.INFO.*.*", "CONSUMER.MSG.NEXT.>")

// NeedsToPublish reports whether a role publishes on a subject, and whether it can do nothing at all without it.
func (r Role) NeedsToPublish(subject string) (needed, always bool) {
	needed = matchesAny(subject, r.Publish) || matchesAny(subject, r.StoredFor) || matchesAny(subject, r.Announces)
	return needed, needed && matchesAny(subject, vitalRequests)
}

// NeedsToSubscribe reports whether a role subscribes to a subject, which may be a pattern.
func (r Role) NeedsToSubscribe(subject string) bool {
	return matchesAny(subject, r.Subscribe) || matchesAny(subject, r.Answers)
}

// matchesAny reports whether one of the patterns covers all subjects of a subject, which may be a pattern itself.
func matchesAny(subject string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return isWithin(subject, p) })
}

// InboxPrefix returns the subject below which the replies to a user come. Nobody else may subscribe there.
func InboxPrefix(user string) string { return "_INBOX_" + user }

// Roles returns all roles, the operator's first.
func Roles() []Role {
	roles := []Role{
		{Name: Operator, Publish: []string{">"}, Subscribe: []string{">"}},
		{
			Name:      query.StageReparam,
			Publish:   prefixed("network.>", "model.>", "timer.>", "graph.*.*", "cancel.>"),
			Subscribe: prefixed("done.>"),
			Answers:   append(prefixed("infer", "infer.*", "room.*", "keep.>"), "$SRV.>"),
		},
		{Name: query.StageLearn, Publish: prefixed("task.>", "first.>"), Subscribe: prefixed("serves")},
		{Name: query.StageContract, Publish: prefixed("partial.>"), Announces: prefixed("serves")},
		// The aggregator moves models, partials and first answers of jobs that take long to the end of their streams.
		{Name: query.StageAggregate, Publish: prefixed("answer.>", "model.>", "partial.>", "first.>")},
	}
	for i := range roles[1:] { // all but the operator are stages
		roles[i+1].addStagePermissions()
	}
	return append(roles, clientRole())
}

// prefixed returns subjects with the prefix of this version of the messages.
func prefixed(subjects ...string) []string {
	full := make([]string, len(subjects))
	for i, s := range subjects {
		full[i] = wire.Prefix + s
	}
	return full
}

// apiRequests returns the subjects of requests to JetStream.
func apiRequests(requests ...string) []string {
	full := make([]string, len(requests))
	for i, r := range requests {
		full[i] = "$JS.API." + r
	}
	return full
}

// feedsOf has the feeds from which each stage takes messages.
var feedsOf = map[string][]streams.Feed{
	query.StageReparam:   {streams.Models, streams.Redrives},
	query.StageLearn:     {streams.Networks},
	query.StageContract:  {streams.Tasks},
	query.StageAggregate: {streams.Partials, streams.Deadlines, streams.Cancels, streams.Ends, streams.Sweeps},
}

// removes lists per stage the streams in which it may delete messages: forged ones in the way of its own, damaged
// blobs.
var removes = map[string][]string{
	query.StageReparam:  {bus.StreamNetwork, bus.StreamGraph, bus.StreamControl},
	query.StageLearn:    {bus.StreamTask, bus.StreamControl},
	query.StageContract: {bus.StreamPartial, bus.StreamControl},
	query.StageAggregate: {
		bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamAnswer, bus.StreamControl, bus.StreamDeadline,
	},
}

// addStagePermissions adds to a stage's role what every stage needs. A stage looks at streams and consumers, takes its own
// messages, reads stored bytes, and writes blobs, dead letters, and messages that start or end a job. Its progress, and
// the message that it is there, are for all subscribers.
func (r *Role) addStagePermissions() {
	r.Announces = append(r.Announces, prefixed(progress, "here")...)
	r.Publish = append(r.Publish, prefixed("blob.>", "dlq."+r.Name+".>", "redrive.>", "end.>")...)
	r.Publish = append(r.Publish, lookRequests()...)
	r.Publish = append(r.Publish, apiRequests("DIRECT.GET.>", "STREAM.MSG.GET.*")...)
	r.Publish = append(r.Publish, apiRequests("STREAM.MSG.DELETE."+bus.StreamBlob)...)
	for _, stream := range removes[r.Name] { // the streams in which the stage may delete messages
		r.Publish = append(r.Publish, apiRequests("STREAM.MSG.DELETE."+stream)...)
	}

	for _, f := range feedsOf[r.Name] {
		names := []string{f.Name}
		if f.MayHaveLanes {
			names = append(names, f.ConsumerNames(streams.AllLanes())...)
		}
		for _, name := range names {
			r.Publish = append(r.Publish,
				"$JS.API.CONSUMER.MSG.NEXT."+f.Stream+"."+name, "$JS.ACK."+f.Stream+"."+name+".>")
		}
	}

	switch r.Name {
	case query.StageAggregate: // makes room, and purges undeliverable messages from queues
		for _, stream := range []string{
			bus.StreamModel, bus.StreamPartial, bus.StreamAnswer, bus.StreamBlob, bus.StreamDeadline,
			bus.StreamNetwork, bus.StreamTask, bus.StreamControl,
		} {
			r.Publish = append(r.Publish, apiRequests("STREAM.PURGE."+stream)...)
		}
	}
}

// lookRequests returns the requests for the state of streams and consumers, which tell the ids of jobs.
func lookRequests() []string {
	return apiRequests("INFO", "STREAM.INFO.*", "STREAM.NAMES", "STREAM.LIST", "CONSUMER.INFO.*.*", "CONSUMER.NAMES.*", "CONSUMER.LIST.*")
}

// clientRole returns the role that submits jobs without an owner. It may look into every stream, and publishes to none.
func clientRole() Role {
	r := Role{
		Name:    Client,
		Publish: prefixed("infer", "room.*"),
		StoredFor: []string{
			wire.Prefix + "model.*.*", wire.CancelSubject("*"), wire.Prefix + "timer.*.*",
			message.BlobSubject("", "*"), message.GraphSubject("", "*"),
		},
		Subscribe: prefixed("done.*", "progress.*", "here"),
	}
	r.Publish = append(r.Publish, lookRequests()...)
	r.Publish = append(r.Publish, apiRequests("DIRECT.GET.>")...)
	for _, stream := range []string{
		bus.StreamModel, bus.StreamAnswer, bus.StreamBlob, bus.StreamGraph,
	} {
		r.Publish = append(r.Publish, apiRequests("STREAM.MSG.GET."+stream)...)
	}
	return r
}

// Import is a subject that a tenant's account takes from the account of the streams.
type Import struct {
	Subject string
	Local   string // its name in the tenant's account; "": the same
	Stream  bool   // messages come from there; else they go there, and replies come back
}

// keepImport returns the import of a subject whose messages reparam-worker stores for an account: that of the owner, or
// "" for that of clients.
func keepImport(owner, subject string) Import {
	return Import{Subject: message.KeepSubject(owner, subject), Local: subject}
}

// TenantImports returns a tenant's rights: to have a worker store its requests in its lane, cancels of its jobs, and large messages and
// models within its quota, to hear and read its own messages, to read the models that are registered for everybody, and to ask
// whether its lane has room and workers. It publishes to no stream, because the server takes some headers for questions about
// messages of others. A server takes * and > in a subject for tokens where it checks a right, and for wildcards where it looks for a
// message: so a right to read that ends in a wildcard has the owner's token before that.
func TenantImports(tenant string) []Import {
	lane := wire.Lane(tenant)
	var imports []Import
	for _, s := range []string{message.InferSubject(tenant), message.RoomSubject(lane)} {
		imports = append(imports, Import{Subject: s})
	}
	for _, s := range []string{
		wire.ModelSubject(lane, tenant+".*"), wire.CancelSubject(tenant + ".*"),
		message.BlobSubject(tenant, "*"), message.GraphSubject(tenant, "*"),
	} {
		imports = append(imports, keepImport(tenant, s))
	}
	for _, read := range []struct{ stream, subject string }{
		{bus.StreamModel, wire.ModelSubject(lane, tenant+".*")},
		{bus.StreamAnswer, wire.AnswerSubject(tenant + ".*")},
		{bus.StreamControl, wire.CancelSubject(tenant + ".*")},
		{bus.StreamBlob, message.BlobSubject(tenant, "*")},
		{bus.StreamGraph, message.GraphSubject(tenant, "*")},
		{bus.StreamGraph, message.GraphSubject("", "*")},
	} {
		imports = append(imports, Import{Subject: fmt.Sprintf("$JS.API.DIRECT.GET.%s.%s", read.stream, read.subject)})
	}
	for _, s := range []string{wire.DoneSubject(tenant + ".*"), wire.ProgressSubject(tenant + ".*")} {
		imports = append(imports, Import{Subject: s, Stream: true})
	}
	return imports
}

// FindRole returns the role of this name; ok is false if there is none.
func FindRole(name string) (r Role, ok bool) {
	roles := Roles()
	i := slices.IndexFunc(roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return roles[i], true
}

// IsReservedName reports whether a name is a role's or a key's, so that no tenant can have it.
func IsReservedName(name string) bool {
	return isRole(name) || name == Messages || name == Answers
}

// isRole reports whether a role has the name.
func isRole(name string) bool {
	_, ok := FindRole(name)
	return ok
}
