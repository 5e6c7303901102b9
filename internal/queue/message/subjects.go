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

// The kinds, each with its tokens after btn.v1. A <job> that a tenant owns is two tokens, the owner's name first. An
// <owner> is form.Everybody if it is nobody's: a tenant may read what is everybody's with a wildcard in the last token,
// and a server takes the tokens * and > of a request for themselves where it checks permissions, and for wildcards
// where it looks for a message.
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

// Internal reports whether only workers write messages of a kind, for workers or as the answer. Such messages are
// signed. A timer is signed as the deadline that it delivers.
func Internal(k Kind) bool { return k == KindServes || slices.Contains(Internals, k) }

// Internals are the kinds that Internal reports and streams store.
var Internals = []Kind{
	KindNetwork, KindTask, KindPartial, KindFirst, KindAnswer, KindDeadline, KindRedrive, KindEnd,
	KindDLQ,
}

// KindOf returns the kind of a subject, whatever follows it, or "" if the subject is not of version 1.
func KindOf(subject string) Kind {
	rest, _ := strings.CutPrefix(subject, wire.Prefix)
	if len(rest) == len(subject) {
		return ""
	}
	kind, _, _ := strings.Cut(rest, ".")
	return Kind(kind)
}

// WorksFor returns the account of a message, as AccountOf does, from its subject and the tenant in its header.
func WorksFor(subject string, header nats.Header) string {
	return accountName(OwnerOf(subject), header.Get(wire.HeaderTenant))
}

// AccountOf returns the name of the account on which a job's work counts for shares of workers and for rates. That is
// the job's owner. All jobs without an owner that name the same tenant have an account of their own, apart from the
// tenant's, because anybody may name it.
func AccountOf(job, named string) string { return accountName(Owner(job), named) }

// accountName returns the account of a job by its owner, or if that is "", by the tenant that it names.
func accountName(owner, named string) string {
	if owner != "" || named == "" {
		return owner
	}
	return form.Everybody + "." + named
}

// Owner returns the tenant who owns a job, or "" if nobody does. An owned job has the id OWNER.NAME. Its subjects then
// have the owner as a token of its own, by which a server knows who may publish and read what.
func Owner(job string) string { return form.Owner(job) }

// TenantOf returns the tenant of a job: its owner, or if it has none, the tenant that its request names.
func TenantOf(job, named string) string {
	if owner := Owner(job); owner != "" {
		return owner
	}
	return named
}

// LaneOf returns the lane of a job: that of its tenant by TenantOf.
func LaneOf(job, named string) int { return wire.Lane(TenantOf(job, named)) }

// InferSubject returns the subject of requests whose answer is the reply: an owner's own one, or if owner is "", that
// for jobs without an owner.
func InferSubject(owner string) string { return Subject{Kind: KindInfer, Owner: owner}.String() }

// OwnerOf returns the owner in a subject. It is "" if the subject has none, or is not of version 1.
func OwnerOf(subject string) string {
	s, err := ParseSubject(subject)
	if err != nil {
		return ""
	}
	return s.Owner
}

// ErrSubject means that a text is not a subject of version 1.
var ErrSubject = errors.New("wire: not a subject of version 1")

// Subject is a parsed subject. Which fields have a meaning depends on the kind.
type Subject struct {
	Kind   Kind
	Lane   int
	Job    string
	N, K   int    // task, partial: chunk K of N, from 0
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
		return head + strconv.Itoa(s.Lane) + "." + s.Job + "." + strconv.Itoa(s.N) + "." + strconv.Itoa(s.K)
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

// layouts has the tokens after each kind, a letter each: l lane, j job, n number of chunks, k chunk, s stage, d digest.
// An owner's token, which comes before j or d, has no letter.
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

// ParseSubject parses a subject: btn.v1, the kind, and a token for each letter of the kind's layout (lane, job, digest and
// so on). An owner's token may come before the job or the digest. The error wraps ErrSubject and says which token is wrong.
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
	layout, isKnown := layouts[s.Kind]
	if !isKnown {
		return bad("unknown kind")
	}

	// Take out the owner's token, if there is one token more than the layout has.
	tokens = tokens[1:] // those after the kind
	isOwnerRequired := hasOwnerToken(s.Kind)
	hasOneMore := len(tokens) == 1+len(layout)
	if isOwnerRequired && !hasOneMore {
		return bad("%d tokens after the kind, %d expected", len(tokens), 1+len(layout))
	}
	if position := ownerPosition(s.Kind); position >= 0 && hasOneMore {
		switch owner := tokens[position]; {
		case isOwnerRequired && owner == form.Everybody: // s.Owner stays ""
		case form.IsOwner(owner):
			s.Owner = owner
		default:
			return bad("token %q", owner)
		}
		tokens = slices.Delete(tokens, position, position+1)
	}
	if len(tokens) != len(layout) {
		return bad("%d tokens after the kind, %d expected", len(tokens), len(layout))
	}

	for i, t := range tokens {
		if !s.setToken(layout[i], t) {
			return bad("token %q", t)
		}
	}
	return s, nil
}

// ownerPosition returns where the owner's token is among the tokens after a kind, if there is one: before the job or
// the digest. It is −1 for kinds whose messages have no owner.
func ownerPosition(k Kind) int {
	if k == KindInfer { // its only token is the owner's
		return 0
	}
	return strings.IndexAny(layouts[k], "jd")
}

// setToken sets the field of s for a letter of a layout, and reports whether the token is valid for it. The fields
// before it in the layout, and the owner, are set already.
func (s *Subject) setToken(letter byte, token string) (ok bool) {
	switch letter {
	case 'l':
		s.Lane, ok = decimal(token)
		ok = ok && s.Lane < wire.Lanes
	case 'n':
		s.N, ok = decimal(token)
	case 'k':
		s.K, ok = decimal(token)
		ok = ok && s.N <= maxChunks && s.K < s.N
	case 'j':
		if s.Job, ok = token, form.IsToken(token); s.Owner != "" { // the job's id begins with its owner
			s.Job = s.Owner + "." + token
		}
	case 's':
		s.Stage, ok = token, form.IsToken(token)
	case 'd':
		s.Digest, ok = token, form.IsDigest(token)
	}
	return ok
}

// hasOwnerToken reports whether subjects of a kind always have an owner's token, which is form.Everybody if nobody owns
// what is there. These are the kinds whose layout is a digest alone.
func hasOwnerToken(k Kind) bool { return layouts[k] == "d" }

// decimal parses a number that is not negative, and accepts only the form in which String writes it: no sign, no
// leading zeros.
func decimal(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}

// NetworkSubject returns the subject of a job's network.
func NetworkSubject(lane int, job string) string { return laneSubject(KindNetwork, lane, job) }

// TimerSubject returns the subject on which a job's deadline is stored until its time comes.
func TimerSubject(lane int, job string) string { return laneSubject(KindTimer, lane, job) }

// DeadlineSubject returns the subject on which the server delivers a job's deadline.
func DeadlineSubject(lane int, job string) string { return laneSubject(KindDeadline, lane, job) }

// BlobSubject returns the subject of a payload by its owner, "" for everybody, and its digest.
func BlobSubject(owner, digest string) string {
	return Subject{Kind: KindBlob, Owner: owner, Digest: digest}.String()
}

// GraphSubject returns the subject of a registered model by its owner, "" for everybody, and its digest. The name of a
// registered model in the place of the digest gives the subject of the name.
func GraphSubject(owner, digest string) string {
	return Subject{Kind: KindGraph, Owner: owner, Digest: digest}.String()
}

// FirstSubject returns the subject of a job's first answer.
func FirstSubject(job string) string { return Subject{Kind: KindFirst, Job: job}.String() }

// RedriveSubject returns the subject of the message that starts a job again.
func RedriveSubject(lane int, job string) string { return laneSubject(KindRedrive, lane, job) }

// RoomSubject returns the subject on which workers are asked about a lane.
func RoomSubject(lane int) string { return Subject{Kind: KindRoom, Lane: lane}.String() }

// ServesSubject is the subject on which contract-workers send Serves.
const ServesSubject = wire.Prefix + string(KindServes)

// HereSubject is the subject on which workers of all stages send Here.
const HereSubject = wire.Prefix + string(KindHere)

// keepPrefix begins the subjects of messages that a tenant's user asks a worker to store: requests, blobs and models.
const keepPrefix = wire.Prefix + "keep."

// KeepSubject returns the subject on which a tenant's user asks a worker to store a message on subject, which may have
// wildcards.
func KeepSubject(tenant, subject string) string {
	return KeepFilter(wire.Lane(tenant), strings.TrimPrefix(subject, wire.Prefix))
}

// KeepFilter returns the filter of the subjects on which users of a lane's tenants ask a worker to store messages on
// btn.v1.<end>.
func KeepFilter(lane int, end string) string { return keepPrefix + strconv.Itoa(lane) + "." + end }

// Kept returns the subject on which a worker has to store a message that a user sent on a subject by KeepSubject.
func Kept(subject string) string {
	_, end, _ := strings.Cut(strings.TrimPrefix(subject, keepPrefix), ".")
	return wire.Prefix + end
}

// EndSubject returns the subject of the message that asks the aggregator to end a job.
func EndSubject(lane int, job string) string { return laneSubject(KindEnd, lane, job) }

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

// laneSubject returns a subject that has a lane and a job.
func laneSubject(k Kind, lane int, job string) string {
	return Subject{Kind: k, Lane: lane, Job: job}.String()
}

// Filter returns the subject filter of all messages of a kind: btn.v1.<kind>.>
func Filter(k Kind) string { return wire.Prefix + string(k) + ".>" }

// StreamSubjects returns the subjects of a kind that a stream takes, with wildcards for the tokens that ParseSubject
// expects. If an owner's token is optional, each subject is there without and with one. A kind with lanes (l in its
// layout) has subjects for every lane. If a message has any other subject, no stream takes it, and its publisher learns
// that at once.
func StreamSubjects(k Kind) []string {
	layout := layouts[k]
	wildcards := strings.Repeat(".*", len(layout)) // one for each token of the layout
	if !strings.HasPrefix(layout, "l") {
		unowned := wire.Prefix + string(k) + wildcards
		if hasOwnerToken(k) {
			return []string{unowned + ".*"}
		}
		return []string{unowned, unowned + ".*"}
	}

	var subjects []string
	for lane := range wire.Lanes {
		unowned := wire.Prefix + string(k) + "." + strconv.Itoa(lane) + wildcards[len(".*"):] // the lane in the place of its wildcard
		subjects = append(subjects, unowned, unowned+".*")
	}
	return subjects
}

// OwnerFilter returns the filter of all messages of a kind that a tenant owns. It is "" for a name that no owner has.
// The kind is one whose messages have a job or a digest.
func OwnerFilter(k Kind, tenant string) string {
	if !form.IsOwner(tenant) {
		return ""
	}
	layout := layouts[k]

	tokens := strings.Split(strings.Repeat("*", len(layout)), "") // a * for each token of the layout
	if strings.HasPrefix(layout, "l") {
		tokens[0] = strconv.Itoa(wire.Lane(tenant))
	}
	beforeJobOrDigest := strings.IndexAny(layout, "jd")
	tokens = slices.Insert(tokens, beforeJobOrDigest, tenant)
	return wire.Prefix + string(k) + "." + strings.Join(tokens, ".")
}

// JobFilter returns the filter of all messages of a kind that belong to a job in a lane. It is "" for blobs and registered
// models.
func JobFilter(k Kind, lane int, job string) string {
	layout := layouts[k]
	if !strings.Contains(layout, "j") {
		return ""
	}

	// A * for each token of the layout, except the lane and the job.
	tokens := strings.Split(strings.Repeat("*", len(layout)), "")
	if strings.HasPrefix(layout, "l") {
		tokens[0] = strconv.Itoa(lane)
	}
	tokens[strings.IndexByte(layout, 'j')] = job
	return wire.Prefix + string(k) + "." + strings.Join(tokens, ".")
}

// AnyLaneFilter returns the filter of a job's request in any lane. A job with an owner can be in one lane only.
func AnyLaneFilter(job string) string {
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
