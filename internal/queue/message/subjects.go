package message

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Kind is the third token of a subject: the kind of message on it.
type Kind string

// The kinds, each with its tokens after btn.v1. A <job> that a tenant owns is two tokens, the owner's name first. An <owner> is
// form.Everybody if it is nobody's: a tenant may read what is everybody's with a wildcard in the last token, and a server takes the
// tokens * and > of a request for themselves where it checks permissions, and for wildcards where it looks for a message.
const (
	KindModel    Kind = "model"    // model.<lane>.<job>
	KindNetwork  Kind = "network"  // network.<lane>.<job>
	KindTask     Kind = "task"     // task.<lane>.<job>.<n>.<k>
	KindPartial  Kind = "partial"  // partial.<lane>.<job>.<n>.<k>
	KindFirst    Kind = "first"    // first.<job>: the answer of a job for which no other comes in time
	KindAnswer   Kind = "answer"   // answer.<job>
	KindDone     Kind = "done"     // done.<job>: the answer, republished
	KindProgress Kind = "progress" // progress.<job>
	KindCancel   Kind = "cancel"   // cancel.<job>
	// timer.<lane>.<job>: holds a scheduled message until the deadline
	KindTimer    Kind = "timer"
	KindDeadline Kind = "deadline" // deadline.<lane>.<job>: where the timer delivers it
	KindRedrive  Kind = "redrive"  // redrive.<lane>.<job>
	KindEnd      Kind = "end"      // end.<lane>.<job>
	KindDLQ      Kind = "dlq"      // dlq.<stage>.<job>
	KindBlob     Kind = "blob"     // blob.<owner>.<digest>
	KindGraph    Kind = "graph"    // graph.<owner>.<digest>: a registered model
	KindRoom     Kind = "room"     // room.<lane>: request and reply, nothing is stored under it
	KindServes   Kind = "serves"   // serves: what contract-workers say of themselves, nothing is stored
	KindHere     Kind = "here"     // here: workers of all stages are alive, with their versions; nothing is stored
	// infer, infer.<owner>: request and reply, nothing is stored under it
	KindInfer Kind = "infer"
)

// Internal reports whether messages of a kind are written by workers only, for workers or as the
// answer: these are signed. A timer is signed as the deadline that it delivers.
func Internal(k Kind) bool { return k == KindServes || slices.Contains(Internals, k) }

// Internals are the kinds that Internal reports and streams store.
var Internals = []Kind{
	KindNetwork, KindTask, KindPartial, KindFirst, KindAnswer, KindDeadline, KindRedrive, KindEnd,
	KindDLQ,
}

// KindOf returns the kind of a subject, whatever follows it; "" for one that is not of version 1.
func KindOf(subject string) Kind {
	rest, _ := strings.CutPrefix(subject, wire.Prefix)
	if len(rest) == len(subject) {
		return ""
	}
	kind, _, _ := strings.Cut(rest, ".")
	return Kind(kind)
}

// WorksFor returns on whose account a message is worked on, by its subject and the tenant of its header; see AccountOf.
func WorksFor(subject string, header nats.Header) string {
	return account(OwnerOf(subject), header.Get(wire.HeaderTenant))
}

// AccountOf returns on whose account a job's work goes, its share of workers and its rate: its owner's, or one of all jobs that nobody
// owns and that name the same tenant. That is another than the tenant's own, because anybody may name it.
func AccountOf(job, named string) string { return account(Owner(job), named) }

func account(owner, named string) string {
	if owner != "" || named == "" {
		return owner
	}
	return form.Everybody + "." + named
}

// Owner returns the tenant who owns a job, or "": a job's id is a token, or its owner's name and a token with a dot between them.
// Subjects then have the owner as a token of its own, by which a server tells who may publish and read what.
func Owner(job string) string { return form.Owner(job) }

// TenantOf returns whose job it is: its owner's, or else the tenant's whom its request names.
func TenantOf(job, named string) string {
	if owner := Owner(job); owner != "" {
		return owner
	}
	return named
}

// LaneOf returns the lane of a job, that of TenantOf.
func LaneOf(job, named string) int { return wire.Lane(TenantOf(job, named)) }

// InferSubject is where an owner's request gets its answer as the reply; "": where that of a job that nobody owns does.
func InferSubject(owner string) string { return Subject{Kind: KindInfer, Owner: owner}.String() }

// OwnerOf returns the owner of what is on a subject, "" if it is nobody's or no subject of version 1.
func OwnerOf(subject string) string {
	s, err := ParseSubject(subject)
	if err != nil {
		return ""
	}
	return s.Owner
}

// ErrSubject: a text is not a subject of version 1.
var ErrSubject = errors.New("wire: not a subject of version 1")

// Subject is a parsed subject. Which fields have a meaning depends on the kind.
type Subject struct {
	Kind   Kind
	Lane   int
	Job    string
	N, K   int    // task, partial: chunk K of N
	Stage  string // dlq
	Owner  string // of the job, the blob, the registered model or the request; "" if it is nobody's
	Digest string // blob, graph
}

// String returns the subject. It does not check the fields; ParseSubject(s.String()) does.
func (s Subject) String() string {
	head := wire.Prefix + string(s.Kind) + "."
	switch s.Kind {
	case KindModel, KindNetwork, KindTimer, KindDeadline, KindRedrive, KindEnd:
		return head + strconv.Itoa(s.Lane) + "." + s.Job
	case KindTask, KindPartial:
		return head + strconv.Itoa(
			s.Lane,
		) + "." + s.Job + "." + strconv.Itoa(
			s.N,
		) + "." + strconv.Itoa(
			s.K,
		)
	case KindDLQ:
		return head + s.Stage + "." + s.Job
	case KindRoom:
		return head + strconv.Itoa(s.Lane)
	case KindBlob, KindGraph:
		return head + cmp.Or(s.Owner, form.Everybody) + "." + s.Digest
	case KindInfer:
		if s.Owner != "" {
			return wire.InferSubject + "." + s.Owner
		}
		return wire.InferSubject
	case KindServes, KindHere:
		return wire.Prefix + string(s.Kind)
	}
	return head + s.Job
}

// layouts has the tokens after a kind, a letter each: l lane, j job, n number of chunks, k chunk, s
// stage, d digest.
var layouts = map[Kind]string{
	KindModel:    "lj",
	KindNetwork:  "lj",
	KindTimer:    "lj",
	KindDeadline: "lj",
	KindRedrive:  "lj",
	KindEnd:      "lj",
	KindTask:     "ljnk",
	KindPartial:  "ljnk",
	KindFirst:    "j",
	KindAnswer:   "j",
	KindDone:     "j",
	KindProgress: "j",
	KindCancel:   "j",
	KindDLQ:      "sj",
	KindBlob:     "d",
	KindGraph:    "d",
	KindRoom:     "l",
	KindServes:   "",
	KindHere:     "",
	KindInfer:    "",
}

// ParseSubject parses a subject. Its error wraps ErrSubject and says which token is wrong.
func ParseSubject(subject string) (Subject, error) {
	bad := func(format string, args ...any) (Subject, error) {
		return Subject{}, fmt.Errorf(
			"%w: %.200q: %s", ErrSubject, subject, fmt.Sprintf(format, args...),
		)
	}

	rest, ok := strings.CutPrefix(subject, wire.Prefix)
	if !ok {
		return bad("it does not begin with %s", wire.Prefix)
	}

	tokens := strings.Split(rest, ".")
	s := Subject{Kind: Kind(tokens[0])}
	layout, known := layouts[s.Kind]
	if !known {
		return bad("unknown kind")
	}
	at := strings.IndexAny(layout, "jd") // where an owner may be
	if s.Kind == KindInfer {
		at = 0
	}
	always := alwaysOwned(s.Kind)
	if always && len(tokens) != 2+len(layout) {
		return bad("%d tokens after the kind, %d expected", len(tokens)-1, 1+len(layout))
	}
	if at >= 0 && len(tokens) == 2+len(layout) {
		switch owner := tokens[1+at]; {
		case always && owner == form.Everybody:
		case form.IsOwner(owner):
			s.Owner = owner
		default:
			return bad("token %q", owner)
		}
		tokens = slices.Delete(tokens, 1+at, 2+at)
	}
	if len(tokens) != 1+len(layout) {
		return bad("%d tokens after the kind, %d expected", len(tokens)-1, len(layout))
	}

	for i, t := range tokens[1:] {
		switch layout[i] {
		case 'l':
			s.Lane, ok = decimal(t)
			ok = ok && s.Lane < wire.Lanes
		case 'n':
			s.N, ok = decimal(t)
		case 'k':
			s.K, ok = decimal(t)
			ok = ok && s.N <= maxChunks && s.K < s.N
		case 'j':
			if s.Job, ok = t, form.IsToken(t); s.Owner != "" {
				s.Job = s.Owner + "." + t
			}
		case 's':
			s.Stage, ok = t, form.IsToken(t)
		case 'd':
			s.Digest, ok = t, form.IsDigest(t)
		}
		if !ok {
			return bad("token %q", t)
		}
	}
	return s, nil
}

// alwaysOwned reports whether subjects of a kind have an owner's token also where what is there is nobody's.
func alwaysOwned(k Kind) bool { return layouts[k] == "d" }

// decimal parses a number, only in the form that String writes.
func decimal(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}

// NetworkSubject returns the subject of a job's network.
func NetworkSubject(lane int, job string) string { return laned(KindNetwork, lane, job) }

// TimerSubject holds a job's deadline until it has come.
func TimerSubject(lane int, job string) string { return laned(KindTimer, lane, job) }

// DeadlineSubject is where the timer delivers a job's deadline.
func DeadlineSubject(lane int, job string) string { return laned(KindDeadline, lane, job) }

// BlobSubject is the subject of a payload of an owner, "": of everybody, by digest.
func BlobSubject(owner, digest string) string {
	return Subject{Kind: KindBlob, Owner: owner, Digest: digest}.String()
}

// GraphSubject is the subject of a registered model of an owner, "": of everybody, by digest; of its name by that.
func GraphSubject(owner, digest string) string {
	return Subject{Kind: KindGraph, Owner: owner, Digest: digest}.String()
}

// FirstSubject returns the subject of a job's first answer.
func FirstSubject(job string) string { return Subject{Kind: KindFirst, Job: job}.String() }

// RedriveSubject returns the subject of the message that starts a job again.
func RedriveSubject(lane int, job string) string { return laned(KindRedrive, lane, job) }

// RoomSubject is where workers are asked about a lane.
func RoomSubject(lane int) string { return Subject{Kind: KindRoom, Lane: lane}.String() }

// ServesSubject is where contract-workers say that they work, and of which numeric kind they are.
const ServesSubject = wire.Prefix + string(KindServes)

// HereSubject is where workers of all stages say that they are there, for people.
const HereSubject = wire.Prefix + string(KindHere)

// keepPrefix begins the subjects of a tenant's requests that a worker store a request, a blob or a model.
const keepPrefix = wire.Prefix + "keep."

// KeepSubject returns the subject of a tenant's request that a worker store a message under a subject, which may have wildcards.
func KeepSubject(tenant, subject string) string {
	return KeepFilter(wire.Lane(tenant), strings.TrimPrefix(subject, wire.Prefix))
}

// KeepFilter returns the subjects of KeepSubject of the tenants of a lane that end so.
func KeepFilter(lane int, end string) string { return keepPrefix + strconv.Itoa(lane) + "." + end }

// Kept returns the subject under which a worker stores what comes on one of KeepSubject.
func Kept(subject string) string {
	_, end, _ := strings.Cut(strings.TrimPrefix(subject, keepPrefix), ".")
	return wire.Prefix + end
}

// EndSubject returns the subject of the message that asks the aggregator to end a job.
func EndSubject(lane int, job string) string { return laned(KindEnd, lane, job) }

// TaskSubject returns the subject of chunk k of n of a job.
func TaskSubject(lane int, job string, n, k int) string {
	return Subject{Kind: KindTask, Lane: lane, Job: job, N: n, K: k}.String()
}

// PartialSubject returns the subject of the values of chunk k of n.
func PartialSubject(lane int, job string, n, k int) string {
	return Subject{Kind: KindPartial, Lane: lane, Job: job, N: n, K: k}.String()
}

// DLQSubject returns the subject of the dead letters of a stage and job.
func DLQSubject(stage, job string) string {
	return Subject{Kind: KindDLQ, Stage: stage, Job: job}.String()
}

// laned returns a subject that has a lane and a job.
func laned(k Kind, lane int, job string) string {
	return Subject{Kind: k, Lane: lane, Job: job}.String()
}

// Filter returns the subject filter of everything of a kind: btn.v1.<kind>.>
func Filter(k Kind) string { return wire.Prefix + string(k) + ".>" }

// Served returns the subjects of a kind that a stream takes: for a kind with lanes those of every
// lane, with as many tokens as ParseSubject expects, without an owner, if there may be none, and with one. A message on any
// other subject finds no stream, and its publisher learns that at once.
func Served(k Kind) []string {
	layout := layouts[k]
	rest := strings.Repeat(".*", len(layout))
	if !strings.HasPrefix(layout, "l") {
		open := wire.Prefix + string(k) + rest
		if alwaysOwned(k) {
			return []string{open + ".*"}
		}
		return []string{open, open + ".*"}
	}

	var subjects []string
	for lane := range wire.Lanes {
		open := wire.Prefix + string(k) + "." + strconv.Itoa(lane) + rest[2:]
		subjects = append(subjects, open, open+".*")
	}
	return subjects
}

// OwnedBy returns the filter of everything of a kind that a tenant owns; "" for a name that no owner has.
func OwnedBy(k Kind, tenant string) string {
	if !form.IsOwner(tenant) {
		return "" // no owner has such a name
	}
	layout := layouts[k]
	at := strings.IndexAny(layout, "jd")
	tokens := strings.Split(strings.Repeat("*", len(layout)), "")
	if strings.HasPrefix(layout, "l") {
		tokens[0] = strconv.Itoa(wire.Lane(tenant))
	}
	tokens = slices.Insert(tokens, at, tenant)
	return wire.Prefix + string(k) + "." + strings.Join(tokens, ".")
}

// OfJob returns the filter of everything of a kind that belongs to a job of a lane; "" for blobs and registered models.
func OfJob(k Kind, lane int, job string) string {
	layout := layouts[k]
	if !strings.Contains(layout, "j") {
		return ""
	}
	tokens := strings.Split(strings.Repeat("*", len(layout)), "")
	if strings.HasPrefix(layout, "l") {
		tokens[0] = strconv.Itoa(lane)
	}
	tokens[strings.IndexByte(layout, 'j')] = job
	return wire.Prefix + string(k) + "." + strings.Join(tokens, ".")
}

// AnyLane matches the model of a job whatever its lane. One that has an owner can be in one lane only.
func AnyLane(job string) string {
	if owner := Owner(job); owner != "" {
		return wire.ModelSubject(wire.Lane(owner), job)
	}
	return wire.Prefix + string(KindModel) + ".*." + job
}

// LaneFilter returns the filter of one lane of a kind that has lanes: btn.v1.<kind>.<lane>.>
func LaneFilter(k Kind, lane int) string {
	return wire.Prefix + string(k) + "." + strconv.Itoa(lane) + ".>"
}

// ChunksFilter returns the filter of all chunks of a job: btn.v1.<kind>.<lane>.<job>.*.* for tasks
// and partials. (A filter that ended in > would match the jobs of a tenant with the name of the job.)
func ChunksFilter(k Kind, lane int, job string) string {
	return wire.Prefix + string(k) + "." + strconv.Itoa(lane) + "." + job + ".*.*"
}
