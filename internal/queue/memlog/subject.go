package memlog

import (
	"maps"
	"slices"
	"strings"
)

// matches reports whether a subject matches a filter: * stands for one token, a > at the end for one or more.
func matches(filter, subject string) bool {
	at := 0 // bytes of the subject that match
	for i := 0; i < len(filter); i++ {
		begins := i == 0 || filter[i-1] == '.'
		switch {
		case begins && filter[i:] == ">":
			return at < len(subject)
		case begins && filter[i] == '*' && (i+1 == len(filter) || filter[i+1] == '.'):
			for at < len(subject) && subject[at] != '.' {
				at++
			}
		case at == len(subject) || filter[i] != subject[at]:
			return false
		default:
			at++
		}
	}
	return at == len(subject)
}

// collide reports whether a subject exists that matches both filters.
func collide(a, b string) bool {
	alike := 0 // the tokens that both begin with
	for at := 0; at < min(len(a), len(b)) && a[at] == b[at]; at++ {
		if a[at] == '.' {
			alike = at + 1
		}
	}
	a, b = a[alike:], b[alike:]
	for {
		if a == ">" || b == ">" {
			return a != "" && b != ""
		}
		x, as, more := strings.Cut(a, ".")
		y, bs, longer := strings.Cut(b, ".")
		if x != y && x != "*" && y != "*" || more != longer {
			return false
		}
		if !more {
			return true
		}
		a, b = as, bs
	}
}

// literal reports whether a filter has no wildcard.
func literal(filter string) bool { return !strings.ContainsAny(filter, "*>") }

// translate returns the subject that a destination's wildcards give, which stand for the source's in their sequence.
func translate(source, destination, subject string) string {
	var wild []string
	for {
		if source == ">" {
			wild = append(wild, subject)
			break
		}
		f, filters, more := strings.Cut(source, ".")
		s, subjects, _ := strings.Cut(subject, ".")
		if f == "*" {
			wild = append(wild, s)
		}
		if !more {
			break
		}
		source, subject = filters, subjects
	}
	tokens := strings.Split(destination, ".")
	for i, token := range tokens {
		if (token == "*" || token == ">") && len(wild) > 0 {
			tokens[i], wild = wild[0], wild[1:]
		}
	}
	return strings.Join(tokens, ".")
}

// subscription is a client's wish for the messages of a filter.
type subscription struct {
	of     *conn
	id     string
	filter string
	queue  string // of each message one subscription of a queue gets it
	most   int    // it ends after so many; 0: never
	got    int
}

// interest holds all subscriptions.
type interest struct {
	literal map[string][]*subscription // by filter
	inboxes map[string][]*subscription // whose only wildcard is a last token, by all before it
	wild    []*subscription            // all others
	turn    int                        // of the queues' members
}

// list returns the list for a filter, by key if it has one.
func (in *interest) list(filter string) (by map[string][]*subscription, key string) {
	if literal(filter) {
		return in.literal, filter
	}
	if before, ok := strings.CutSuffix(filter, ".*"); ok && literal(before) {
		return in.inboxes, before
	}
	return nil, ""
}

func (in *interest) add(s *subscription) {
	if by, key := in.list(s.filter); by != nil {
		by[key] = append(by[key], s)
		return
	}
	in.wild = append(in.wild, s)
}

func (in *interest) remove(s *subscription) {
	is := func(one *subscription) bool { return one == s }
	by, key := in.list(s.filter)
	if by == nil {
		in.wild = slices.DeleteFunc(in.wild, is)
		return
	}
	if left := slices.DeleteFunc(by[key], is); len(left) > 0 {
		by[key] = left
	} else {
		delete(by, key)
	}
}

// before returns all tokens of a subject but the last.
func before(subject string) string { return subject[:max(strings.LastIndexByte(subject, '.'), 0)] }

// of returns the subscriptions that get a message of a subject: all without a queue, and one of each queue.
func (in *interest) of(subject string) []*subscription {
	all := slices.Concat(in.literal[subject], in.inboxes[before(subject)])
	for _, s := range in.wild {
		if matches(s.filter, subject) {
			all = append(all, s)
		}
	}
	if !slices.ContainsFunc(all, func(s *subscription) bool { return s.queue != "" }) {
		return all
	}
	var get []*subscription
	members := map[string][]*subscription{}
	for _, s := range all {
		if s.queue == "" {
			get = append(get, s)
			continue
		}
		if members[s.queue] == nil {
			in.turn++
		}
		members[s.queue] = append(members[s.queue], s)
	}
	for _, queue := range slices.Sorted(maps.Keys(members)) {
		get = append(get, members[queue][in.turn%len(members[queue])])
	}
	return get
}

// any reports whether somebody would get a message of a subject.
func (in *interest) any(subject string) bool {
	return len(in.literal[subject]) > 0 || len(in.inboxes[before(subject)]) > 0 ||
		slices.ContainsFunc(in.wild, func(s *subscription) bool { return matches(s.filter, subject) })
}
