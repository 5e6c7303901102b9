package problem

// Forms: data derived from a network, made once for all parts of a task.

import (
	"context"
	"sync"
)

// maxSlots is the largest number of slots of Forms. Before one more is added, all are dropped.
const maxSlots = 64

// Forms is a cache of forms, values derived from a network, by slot. The zero value is empty. Several goroutines may use it.
type Forms struct {
	mu            sync.Mutex
	entries       map[any]*entry
	startedBuilds int // forms that were made, or whose making began
}

// entry is the form in a slot, or the reservation of the goroutine that makes it. value and hasFailed are final when done is closed.
type entry struct {
	variant   any
	value     any
	hasFailed bool
	done      chan struct{}
}

// Form returns the form of a problem in a slot. If the slot has no form of this variant, it calls build and keeps the result there. A slot
// holds one form, of the variant that was asked for last. The form of another variant is dropped before build is called, because two large
// ones may not fit. Slots and variants are compared by ==. A package's own type for its slots keeps them apart from those of other
// packages. If several goroutines ask for the same form, one of them builds it and the others wait, unless their context ends. If that
// fails, the next one builds it. The error is build's or the context's.
func Form[T any](ctx context.Context, p *Problem, slot, variant any, build func() (T, error)) (T, error) {
	return FormIn(ctx, &p.forms, slot, variant, build)
}

// FormOfBase returns a form of the network without evidence, p.Base. It is like Form, but the form is kept by p.shared, in common for all
// problems of one Shared with the same base. If the problem has no Shared, the form is built in each call and not kept.
func FormOfBase[T any](ctx context.Context, p *Problem, slot any, build func() (T, error)) (T, error) {
	if p.shared == nil {
		return build()
	}
	return FormIn(ctx, &p.shared.bases, slot, p.Base, func() (T, error) {
		p.forms.mu.Lock()
		p.forms.startedBuilds++ // the build counts for this problem, too
		p.forms.mu.Unlock()
		return build()
	})
}

// SetForm puts a form into a slot of the problem. It replaces the form there.
func SetForm(p *Problem, slot, variant, value any) {
	e := &entry{variant: variant, value: value, done: make(chan struct{})}
	close(e.done)
	p.forms.mu.Lock()
	defer p.forms.mu.Unlock()
	p.forms.put(slot, e)
}

// put sets the entry of a slot. If there would be more than maxSlots slots, it drops all other entries. The caller holds the lock.
func (f *Forms) put(slot any, e *entry) {
	_, isReplaced := f.entries[slot]
	isFull := len(f.entries) >= maxSlots
	if f.entries == nil || !isReplaced && isFull {
		f.entries = map[any]*entry{}
	}
	f.entries[slot] = e
}

// FormIn returns the value that f, a cache, holds under the key slot, called a form. A slot holds one form at a time: if it is of another
// variant, or if there is none, build makes a new one. If another goroutine builds the same form at the moment, FormIn waits for that
// build; if that build fails, it tries again. Form does the same in the cache of a problem.
func FormIn[T any](ctx context.Context, f *Forms, slot, variant any, build func() (T, error)) (T, error) {
	for {
		e, isReserved := f.reserve(slot, variant)
		if isReserved { // no other goroutine has built it or builds it
			return buildReserved(f, slot, e, build)
		}
		select {
		case <-e.done:
			if !e.hasFailed {
				return e.value.(T), nil
			}
		case <-ctx.Done():
			var zero T
			return zero, ctx.Err()
		}
	}
}

// reserve returns the entry of a slot if it is of this variant. Otherwise it puts a new entry there, in place of one of another variant,
// and isReserved is true: the caller must build the form of the entry, and then close done. The entry counts as failed (hasFailed) until
// its form is built.
func (f *Forms) reserve(slot, variant any) (e *entry, isReserved bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e = f.entries[slot]; e != nil && e.variant == variant {
		return e, false
	}
	e = &entry{variant: variant, hasFailed: true, done: make(chan struct{})}
	f.put(slot, e)
	f.startedBuilds++
	return e, true
}

// buildReserved builds the form of an entry that the caller has reserved, and wakes the goroutines that wait for it. The entry counts as
// failed until the form is built; after an error or a panic of build it is removed from its slot.
func buildReserved[T any](f *Forms, slot any, e *entry, build func() (T, error)) (T, error) {
	defer func() {
		if e.hasFailed {
			f.mu.Lock()
			if f.entries[slot] == e { // else another variant, or put with full slots, has dropped it already
				delete(f.entries, slot)
			}
			f.mu.Unlock()
		}
		close(e.done)
	}()
	value, err := build()
	if err == nil {
		e.value, e.hasFailed = value, false
	}
	return value, err
}

// drop removes all forms.
func (f *Forms) drop() {
	f.mu.Lock()
	f.entries = nil
	f.mu.Unlock()
}
