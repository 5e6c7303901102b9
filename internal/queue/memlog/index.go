package memlog

import (
	"iter"
	"slices"
	"strings"
)

// subject is a subject with messages.
type subject struct {
	name      string
	sequences []uint64 // of its messages, ascending; never empty
}

// index finds a stream's subjects by name and by filter.
type index struct {
	named map[string]*subject
	root  branch
}

// branch has the subjects that begin with the same tokens.
type branch struct {
	next map[string]*branch // by the token that follows
	leaf *subject           // has no further token; nil: there is none
}

// of returns the sequences of a subject's messages.
func (ix *index) of(name string) []uint64 {
	if s := ix.named[name]; s != nil {
		return s.sequences
	}
	return nil
}

// add notes a message after all others.
func (ix *index) add(name string, sequence uint64) {
	s := ix.named[name]
	if s == nil {
		s = &subject{name: name}
		ix.named[name] = s
		b := &ix.root
		for token := range strings.SplitSeq(name, ".") {
			if b.next == nil {
				b.next = map[string]*branch{}
			}
			if b.next[token] == nil {
				b.next[token] = &branch{}
			}
			b = b.next[token]
		}
		b.leaf = s
	}
	s.sequences = append(s.sequences, sequence)
}

// remove forgets a message.
func (ix *index) remove(name string, sequence uint64) {
	s := ix.named[name]
	if i, there := slices.BinarySearch(s.sequences, sequence); there {
		s.sequences = slices.Delete(s.sequences, i, i+1)
	}
	if len(s.sequences) == 0 {
		delete(ix.named, name)
		ix.root.cut(name)
	}
}

// cut removes a subject, and the branches that have no other one.
func (b *branch) cut(name string) {
	token, rest, more := strings.Cut(name, ".")
	next := b.next[token]
	if more {
		next.cut(rest)
	} else {
		next.leaf = nil
	}
	if next.leaf == nil && len(next.next) == 0 {
		delete(b.next, token)
	}
}

// matching yields the subjects that match a filter, in no order. Its cost is the number of branches that the filter's tokens lead to.
func (ix *index) matching(filter string) iter.Seq[*subject] {
	return func(yield func(*subject) bool) { ix.root.each(filter, yield) }
}

// each yields the subjects whose further tokens match a filter, until yield returns false.
func (b *branch) each(filter string, yield func(*subject) bool) bool {
	token, rest, more := strings.Cut(filter, ".")
	switch {
	case token == ">" && !more:
		for _, next := range b.next {
			if next.leaf != nil && !yield(next.leaf) || !next.each(filter, yield) {
				return false
			}
		}
	case token == "*":
		for _, next := range b.next {
			if !next.after(rest, more, yield) {
				return false
			}
		}
	case b.next[token] != nil:
		return b.next[token].after(rest, more, yield)
	}
	return true
}

// after yields the subject that ends here, or those that match the rest of a filter.
func (b *branch) after(rest string, more bool, yield func(*subject) bool) bool {
	if more {
		return b.each(rest, yield)
	}
	return b.leaf == nil || yield(b.leaf)
}
