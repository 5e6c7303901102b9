package memlog

import (
	"maps"
	"slices"
	"strings"
)

// matches reports whether a subject matches a filter. In a filter, * stands for one token, and > at the end for one or
// more.
func matches(filter, subject string) bool {
	matched := 0 // number of bytes of the subject that match filter[:i]
	for i := 0; i < len(filter); i++ {
		isTokenStart := i == 0 || filter[i-1] == '.'
		switch {
		case isTokenStart && filter[i:] == ">":
			return matched < len(subject)
		case isTokenStart && filter[i] == '*' && (i+1 == len(filter) || filter[i+1] == '.'):
			for matched < len(subject) && subject[matched] != '.' {
				matched++
			}
		case matched == len(subject) || filter[i] != subject[matched]:
			return false
		default:
			matched++
		}
	}
	return matched == len(subject)
}

// overlap reports whether some subject matches both filters.
func overlap(a, b string) bool {
	// Skip the tokens that both begin with.
	common := 0
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		if a[i] == '.' {
			common = i + 1
		}
	}
	a, b = a[common:], b[common:]

	// Compare token by token.
	for {
		if a == ">" || b == ">" {
			return a != "" && b != ""
		}
		tokenA, restA, hasMoreA := strings.Cut(a, ".")
		tokenB, restB, hasMoreB := strings.Cut(b, ".")
		if tokenA != tokenB && tokenA != "*" && tokenB != "*" || hasMoreA != hasMoreB {
			return false
		}
		if !hasMoreA {
			return true
		}
		a, b = restA, restB
	}
}

// isLiteral reports whether a filter has no wildcard.
func isLiteral(filter string) bool { return !strings.ContainsAny(filter, "*>") }

// mapSubject returns destination with its wildcards replaced: the first one by what the first wildcard of source stands
// for in subject, and so on. For the source a.*, the destination b.*.c and the subject a.x it is b.x.c.
func mapSubject(source, destination, subject string) string {
	var values []string
	for { // for each token of source
		if source == ">" { // it stands for all remaining tokens
			values = append(values, subject)
			break
		}
		filterToken, filterRest, hasMore := strings.Cut(source, ".")
		subjectToken, subjectRest, _ := strings.Cut(subject, ".") // it has this token, because subject matches source
		if filterToken == "*" {
			values = append(values, subjectToken)
		}
		if !hasMore {
			break
		}
		source, subject = filterRest, subjectRest
	}
	tokens := strings.Split(destination, ".")
	for i, token := range tokens {
		if (token == "*" || token == ">") && len(values) > 0 {
			tokens[i], values = values[0], values[1:]
		}
	}
	return strings.Join(tokens, ".")
}

// subscription says that a client wants the messages whose subject matches a filter.
type subscription struct {
	conn        *conn
	id          string
	filter      string
	queue       string // if not "", each message goes to one of the subscriptions with this queue
	maxMessages int    // it ends after so many messages; 0: never
	delivered   int    // number of messages so far
}

// interest holds all subscriptions.
type interest struct {
	literal   map[string][]*subscription // those without wildcards, by filter
	lastWild  map[string][]*subscription // those with one wildcard, * as the last token, by the tokens before it
	otherWild []*subscription            // all others
	queueTurn int                        // which member of a queue gets the next message
}

// listFor returns where the subscriptions of a filter are: the map, and the key of their list in it. The map is nil for a
// filter that has other wildcards than one * at its end: such subscriptions are in otherWild.
func (in *interest) listFor(filter string) (lists map[string][]*subscription, key string) {
	if isLiteral(filter) {
		return in.literal, filter
	}
	if prefix, ok := strings.CutSuffix(filter, ".*"); ok && isLiteral(prefix) {
		return in.lastWild, prefix
	}
	return nil, ""
}

// add adds a subscription.
func (in *interest) add(s *subscription) {
	if lists, key := in.listFor(s.filter); lists != nil {
		lists[key] = append(lists[key], s)
		return
	}
	in.otherWild = append(in.otherWild, s)
}

// remove removes a subscription.
func (in *interest) remove(s *subscription) {
	isSame := func(other *subscription) bool { return other == s }
	lists, key := in.listFor(s.filter)
	if lists == nil {
		in.otherWild = slices.DeleteFunc(in.otherWild, isSame)
		return
	}
	if remaining := slices.DeleteFunc(lists[key], isSame); len(remaining) > 0 {
		lists[key] = remaining
	} else {
		delete(lists, key)
	}
}

// withoutLastToken returns the tokens of a subject before the last one.
func withoutLastToken(subject string) string {
	return subject[:max(strings.LastIndexByte(subject, '.'), 0)]
}

// receivers returns the subscriptions that get a message of a subject: all that match and have no queue, and one of
// each queue.
func (in *interest) receivers(subject string) []*subscription {
	matching := slices.Concat(in.literal[subject], in.lastWild[withoutLastToken(subject)])
	for _, s := range in.otherWild {
		if matches(s.filter, subject) {
			matching = append(matching, s)
		}
	}
	if !slices.ContainsFunc(matching, func(s *subscription) bool { return s.queue != "" }) {
		return matching
	}

	// Divide them by queue, and take one member of each queue. queueTurn, the count of earlier turns, selects it.
	var receivers []*subscription
	members := map[string][]*subscription{}
	for _, s := range matching {
		if s.queue == "" {
			receivers = append(receivers, s)
			continue
		}
		if members[s.queue] == nil {
			in.queueTurn++
		}
		members[s.queue] = append(members[s.queue], s)
	}
	for _, queue := range slices.Sorted(maps.Keys(members)) {
		receivers = append(receivers, members[queue][in.queueTurn%len(members[queue])])
	}
	return receivers
}

// hasReceiver reports whether a subscription would get a message of a subject.
func (in *interest) hasReceiver(subject string) bool {
	return len(in.literal[subject]) > 0 || len(in.lastWild[withoutLastToken(subject)]) > 0 ||
		slices.ContainsFunc(in.otherWild, func(s *subscription) bool { return matches(s.filter, subject) })
}
