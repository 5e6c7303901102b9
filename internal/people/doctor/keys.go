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

// mostHeard bounds the messages that wait while other parts are examined.
const mostHeard = 10_000

// listen hears workers from now on for a while. The function that it returns waits for the end of that, and returns the last message of
// each worker that is there, in the order of stages, machines and processes.
func listen(ctx context.Context, nc *nats.Conn, while time.Duration) func() ([]message.Here, error) {
	if while <= 0 {
		return func() ([]message.Here, error) { return nil, errNotHeard }
	}
	until := time.Now().Add(while)
	sub, err := nc.SubscribeSync(message.HereSubject)
	if err != nil {
		return func() ([]message.Here, error) { return nil, err }
	}
	if err = sub.SetPendingLimits(mostHeard, -1); err == nil {
		err = nc.FlushTimeout(while)
	}
	return func() ([]message.Here, error) {
		defer sub.Unsubscribe()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		workers := map[string]message.Here{} // by process
		for {
			m, err := sub.NextMsgWithContext(ctx)
			if err != nil {
				return there(workers), nil
			}
			var here message.Here
			if wire.Decode(m.Data, &here) == nil {
				workers[here.Process] = here
			}
		}
	}
}

// errNotHeard says that nobody listened.
var errNotHeard = fmt.Errorf("workers say every %v which keys they have: they were not listened to", message.HereEvery)

// there are the workers that are not gone, sorted.
func there(workers map[string]message.Here) (present []message.Here) {
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

// keys names the workers that do not believe most others, or are not believed by them.
func keys(workers []message.Here, err error) (findings []Finding) {
	const part = "keys"
	switch {
	case err != nil:
		return []Finding{{Unknown, part, err.Error(), ""}}
	case len(workers) == 0:
		return []Finding{{Unknown, part, "no worker said which keys it has", ""}}
	}
	var group []message.Here // workers that believe each other
	for _, w := range byAgreement(workers) {
		opponent, flag := disagreeing(w, group)
		if flag == "" {
			group = append(group, w)
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
	says := fmt.Sprintf("the %d workers believe each other's messages", len(workers))
	if len(workers[0].MessageKeys) == 0 {
		says += ", which are not signed (--message-keys)"
	}
	return []Finding{{Good, part, says, ""}}
}

// byAgreement sorts workers by how many others they believe and are believed by, those with the most first.
func byAgreement(workers []message.Here) []message.Here {
	agreeing := map[string]int{} // by process
	for _, w := range workers {
		for _, peer := range workers {
			if differingFlag(w, peer) == "" {
				agreeing[w.Process]++
			}
		}
	}
	return slices.SortedStableFunc(slices.Values(workers), func(a, b message.Here) int {
		return cmp.Compare(agreeing[b.Process], agreeing[a.Process])
	})
}

// disagreeing returns the first of a group that does not believe a worker or is not believed by it, and the flag with the keys.
func disagreeing(w message.Here, group []message.Here) (opponent message.Here, flag string) {
	for _, opponent := range group {
		if flag := differingFlag(w, opponent); flag != "" {
			return opponent, flag
		}
	}
	return opponent, ""
}

// differingFlag returns the flags by whose keys one of two workers does not believe the other, "" where both do.
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

// believesMessages reports whether a worker believes the messages that another one signs.
func believesMessages(w, signer message.Here) bool {
	return len(w.MessageKeys) == 0 || len(signer.MessageKeys) > 0 && slices.Contains(w.MessageKeys, signer.MessageKeys[0])
}

// believesAnswers reports whether a worker believes the answers of another one, if that is an aggregator.
func believesAnswers(w, signer message.Here) bool {
	return signer.Stage != query.StageAggregate || len(w.AnswersKeys) == 0 || slices.Contains(w.AnswersKeys, signer.AnswersSigner)
}
