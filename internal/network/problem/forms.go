package problem

// Forms: data derived from a network, made once for all parts of a task.

import (
	"context"
	"sync"
)

// maxSlots is the largest number of slots of Forms. Before one more is added, all are dropped.
const maxSlots = 64

// Forms is a table of derived values by slot. The zero value is empty. Several goroutines may use it.
type Forms struct {
	mu      sync.Mutex
	entries map[any]*entry
	begun   int // forms that were made, or whose making began
}

// entry is the form in a slot, or the reservation of the goroutine that makes it. value and hasFailed are final when done is closed.
type entry struct {
	variant   any
	value     any
	hasFailed bool
	done      chan struct{}
}

// Form returns the form of a problem in a slot. It calls build if the slot has no form of this variant. A slot holds one form, of the
// variant that was asked for last. The form of another variant is dropped before build is called, because two large ones may not fit.
// Slots and variants are compared by ==. A package's own type for its slots keeps them apart from those of other packages. If several
// goroutines ask for the same form, one of them builds it and the others wait, unless their context ends. If that fails, the next one
// builds it. The error is build's or the context's.
func Form[T any](ctx context.Context, p *Problem, slot, variant any, build func() (T, error)) (T, error) {
	return FormIn(ctx, &p.forms, slot, variant, build)
}

// FormOfBase is Form for a form of the network without evidence. All problems of one Shared with the same base have this form in common.
// If the problem has no Shared, the form is built in each call and not kept.
func FormOfBase[T any](ctx context.Context, p *Problem, slot any, build func() (T, error)) (T, error) {
	if p.shared == nil {
		return build()
	}
	return FormIn(ctx, &p.shared.bases, slot, p.Base, func() (T, error) {
		p.forms.mu.Lock()
		p.forms.begun++
		p.forms.mu.Unlock()
		return build()
	})
}

// Keep puts a form into a slot, in the place of the form there.
func Keep(p *Problem, slot, variant, value any) {
	e := &entry{variant: variant, value: value, done: make(chan struct{})}
	close(e.done)
	p.forms.mu.Lock()
	defer p.forms.mu.Unlock()
	p.forms.put(slot, e)
}

// put sets the entry of a slot. If that is one slot too many, all other entries are dropped. The caller holds the lock.
func (f *Forms) put(slot any, e *entry) {
	if _, ok := f.entries[slot]; f.entries == nil || !ok && len(f.entries) >= maxSlots {
		f.entries = map[any]*entry{}
	}
	f.entries[slot] = e
}

// FormIn is Form with the slots of f in place of a problem's.
func FormIn[T any](ctx context.Context, f *Forms, slot, variant any, build func() (T, error)) (T, error) {
	for {
		e, isReserved := f.reserve(slot, variant)
		if isReserved {
			return fill(f, slot, e, build)
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

// reserve returns the entry of a slot, if it is of this variant. Else it puts a new entry there and returns isReserved: the caller has to
// fill it.
func (f *Forms) reserve(slot, variant any) (e *entry, isReserved bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e = f.entries[slot]; e != nil && e.variant == variant {
		return e, false
	}
	e = &entry{variant: variant, hasFailed: true, done: make(chan struct{})}
	f.put(slot, e)
	f.begun++
	return e, true
}

// fill builds the form of a reserved entry and wakes those who wait for it. After an error or a panic of build, the slot is free again.
func fill[T any](f *Forms, slot any, e *entry, build func() (T, error)) (T, error) {
	defer func() {
		if e.hasFailed {
			f.mu.Lock()
			if f.entries[slot] == e {
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

// drop forgets all forms.
func (f *Forms) drop() {
	f.mu.Lock()
	f.entries = nil
	f.mu.Unlock()
}
