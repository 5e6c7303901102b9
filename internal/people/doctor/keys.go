package doctor

// The keys of workers, by their own messages.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// maxPending bounds the messages of workers that wait while other parts are examined.
const maxPending = 10_000

// listenToWorkers starts to listen to the messages of the workers, for a duration. The function that it returns waits
// until that time is over and returns the last message of each worker that is present, in the order of stages, machines
// and processes.
func listenToWorkers(ctx context.Context, nc *nats.Conn, duration time.Duration) func() ([]message.Here, error) {
	if duration <= 0 {
		return func() ([]message.Here, error) { return nil, errNotHeard }
	}
	end := time.Now().Add(duration)
	sub, err := nc.SubscribeSync(message.HereSubject)
	if err != nil {
		return func() ([]message.Here, error) { return nil, err }
	}
	if err = sub.SetPendingLimits(maxPending, -1); err == nil { // −1: any number of bytes
		err = nc.FlushTimeout(duration) // from then on the server sends the messages; the returned function takes them
	}
	return func() ([]message.Here, error) {
		defer sub.Unsubscribe()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		workers := map[string]message.Here{} // by process
		for {
			m, err := sub.NextMsgWithContext(ctx)
			if err != nil { // the time is over
				return presentWorkers(workers), nil
			}
			var here message.Here
			if wire.Decode(m.Data, &here) == nil {
				workers[here.Process] = here
			}
		}
	}
}

// errNotHeard is the error if there was no time to listen.
var errNotHeard = fmt.Errorf("workers say every %v which keys they have: they were not listened to", message.HereEvery)

// presentWorkers returns the workers that have not said that they go, sorted by stage, machine and process.
func presentWorkers(workers map[string]message.Here) (present []message.Here) {
	for _, w := range workers {
		if !w.Gone {
			present = append(present, w)
		}
	}
	slices.SortFunc(present, func(a, b message.Here) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Process, b.Process))
	})
	return present
}

// checkKeys returns a finding for each worker that does not believe a worker of the majority or is not believed by one,
// or one good finding if all agree. err is the reason why no worker was heard.
func checkKeys(workers []message.Here, err error) (findings []Finding) {
	const part = "keys"
	switch {
	case err != nil:
		return []Finding{{Unknown, part, err.Error(), ""}}
	case len(workers) == 0:
		return []Finding{{Unknown, part, "no worker said which keys it has", ""}}
	}
	// Grow a group of workers that believe each other, beginning with those that agree with most. The others have other keys.
	var agreeing []message.Here
	for _, w := range byAgreement(workers) {
		opponent, flag := firstDisagreement(w, agreeing)
		if flag == "" {
			agreeing = append(agreeing, w)
			continue
		}
		findings = append(findings, Finding{
			Bad, part, fmt.Sprintf("%s has another %s than %s: they take each other's messages for forged", w.Worker(), flag, opponent.Worker()),
			fmt.Sprintf("give %s the %s of %s; a file is read again when it changes", w.Worker(), flag, opponent.Worker()),
		})
	}
	if len(findings) > 0 {
		return findings
	}

	// All of them agree.
	says := fmt.Sprintf("the %d workers believe each other's messages", len(workers))
	if len(workers[0].MessageKeys) == 0 {
		says += ", which are not signed (--message-keys)"
	}
	return []Finding{{Good, part, says, ""}}
}

// byAgreement sorts workers by how many workers they believe and are believed by, those with the most first.
func byAgreement(workers []message.Here) []message.Here {
	partners := map[string]int{} // by process
	for _, w := range workers {
		for _, peer := range workers {
			if differingFlag(w, peer) == "" {
				partners[w.Process]++
			}
		}
	}
	return slices.SortedStableFunc(slices.Values(workers), func(a, b message.Here) int {
		return cmp.Compare(partners[b.Process], partners[a.Process])
	})
}

// firstDisagreement returns the first worker of a group that does not believe w or is not believed by it, and the flag
// whose keys differ. flag is "" if all of them agree.
func firstDisagreement(w message.Here, group []message.Here) (opponent message.Here, flag string) {
	for _, opponent := range group {
		if flag := differingFlag(w, opponent); flag != "" {
			return opponent, flag
		}
	}
	return opponent, ""
}

// differingFlag returns the flags whose keys differ so that one of two workers does not believe the other; "" if both
// believe each other.
func differingFlag(a, b message.Here) string {
	var flags []string
	if !believesMessages(a, b) || !believesMessages(b, a) {
		flags = append(flags, "--message-keys")
	}
	if !believesAnswers(a, b) || !believesAnswers(b, a) {
		flags = append(flags, "--answers-key")
	}
	return strings.Join(flags, " and ")
}

// believesMessages reports whether w believes the messages that signer signs with its first key. Without keys it
// believes all.
func believesMessages(w, signer message.Here) bool {
	return len(w.MessageKeys) == 0 || len(signer.MessageKeys) > 0 && slices.Contains(w.MessageKeys, signer.MessageKeys[0])
}

// believesAnswers reports whether w believes the answers of signer. It does if signer is no aggregator, or if w has no
// keys for answers.
func believesAnswers(w, signer message.Here) bool {
	return signer.Stage != query.StageAggregate || len(w.AnswersKeys) == 0 || slices.Contains(w.AnswersKeys, signer.AnswersSigner)
}
