package memlog

import (
	"iter"
	"slices"
	"strings"
)

// subject has the sequences of the messages on a subject.
type subject struct {
	name      string
	sequences []uint64 // of its messages, ascending; never empty
}

// index finds a stream's subjects by name and by filter.
type index struct {
	byName map[string]*subject
	root   branch // a tree of tokens: a path from the root is a subject
}

// branch is a node of the tree, which stands for the tokens on the path to it.
type branch struct {
	children map[string]*branch // by the next token
	subject  *subject           // the subject that ends here; nil: none does
}

// sequencesOf returns the sequences of a subject's messages.
func (ix *index) sequencesOf(name string) []uint64 {
	if s := ix.byName[name]; s != nil {
		return s.sequences
	}
	return nil
}

// add adds a message on the subject with a name. Its sequence is greater than all others. A new subject gets a path in
// the tree, a branch for each of its tokens.
func (ix *index) add(name string, sequence uint64) {
	s := ix.byName[name]
	if s == nil {
		s = &subject{name: name}
		ix.byName[name] = s
		node := &ix.root
		for token := range strings.SplitSeq(name, ".") {
			if node.children == nil {
				node.children = map[string]*branch{}
			}
			if node.children[token] == nil {
				node.children[token] = &branch{}
			}
			node = node.children[token]
		}
		node.subject = s
	}
	s.sequences = append(s.sequences, sequence)
}

// remove removes a message, and its subject if it was the last one.
func (ix *index) remove(name string, sequence uint64) {
	s := ix.byName[name]
	if i, exists := slices.BinarySearch(s.sequences, sequence); exists {
		s.sequences = slices.Delete(s.sequences, i, i+1)
	}
	if len(s.sequences) == 0 {
		delete(ix.byName, name)
		ix.root.removeSubject(name)
	}
}

// removeSubject removes a subject below b, a branch of the tree of subjects. name has the tokens of the subject after that of
// b. Branches that then have no subject are removed, too.
func (b *branch) removeSubject(name string) {
	token, rest, hasMore := strings.Cut(name, ".")
	child := b.children[token]
	if hasMore {
		child.removeSubject(rest)
	} else {
		child.subject = nil
	}
	if child.subject == nil && len(child.children) == 0 {
		delete(b.children, token)
	}
}

// matching yields the subjects that match a filter, in any order. It visits only the branches that match the filter's
// tokens.
func (ix *index) matching(filter string) iter.Seq[*subject] {
	return func(yield func(*subject) bool) { ix.root.eachMatching(filter, yield) }
}

// eachMatching yields the subjects below b, a branch of the tree of subjects, that match a filter. A branch stands for one
// token, and the filter is for the tokens after that of b. eachMatching returns false if yield did.
func (b *branch) eachMatching(filter string, yield func(*subject) bool) bool {
	token, rest, hasMore := strings.Cut(filter, ".")
	switch {
	case token == ">" && !hasMore:
		for _, child := range b.children {
			if child.subject != nil && !yield(child.subject) || !child.eachMatching(filter, yield) {
				return false
			}
		}
	case token == "*":
		for _, child := range b.children {
			if !child.eachMatchingRest(rest, hasMore, yield) {
				return false
			}
		}
	case b.children[token] != nil:
		return b.children[token].eachMatchingRest(rest, hasMore, yield)
	}
	return true
}

// eachMatchingRest yields the subjects below b whose further tokens match the rest of a filter, or if the filter has no
// more tokens, the subject that ends at b. It returns false if yield did.
func (b *branch) eachMatchingRest(rest string, hasMore bool, yield func(*subject) bool) bool {
	if hasMore {
		return b.eachMatching(rest, yield)
	}
	return b.subject == nil || yield(b.subject)
}
