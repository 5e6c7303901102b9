package problem

// Forms: what is made of a network once, for all parts of a task.

import (
	"context"
	"sync"
)

// mostSlots bounds the slots of Forms: all are dropped before there are more.
const mostSlots = 64

// Forms keeps values by slot. The zero value is empty; it may be used by several goroutines.
type Forms struct {
	mu   sync.Mutex
	kept map[any]*kept
	made int // forms whose making began
}

// kept is the form in a slot. value and failed are set when done is closed.
type kept struct {
	variant any
	value   any
	failed  bool
	done    chan struct{}
}

// Form returns the form of a problem in a slot, or makes it. A slot holds one form, of the variant that was asked for last; another one is
// dropped before its successor is made, because two large ones may not fit. Slots and variants are compared by ==; a package's own
// type for its slots keeps them apart from all others. Goroutines that ask for the same form at once wait for one of them to make it,
// unless their context ends; after an error the next makes it.
func Form[T any](ctx context.Context, p *Problem, slot, variant any, make func() (T, error)) (T, error) {
	return FormIn(ctx, &p.forms, slot, variant, make)
}

// FormOfBase is Form for the network without evidence: the problems of one Shared have one form in common, as long as their
// base is the same. The form of a problem without a Shared is not kept.
func FormOfBase[T any](ctx context.Context, p *Problem, slot any, make func() (T, error)) (T, error) {
	if p.shared == nil {
		return make()
	}
	return FormIn(ctx, &p.shared.bases, slot, p.Base, func() (T, error) {
		p.forms.mu.Lock()
		p.forms.made++
		p.forms.mu.Unlock()
		return make()
	})
}

// Keep puts a form into a slot, in the place of the one there.
func Keep(p *Problem, slot, variant, value any) {
	k := &kept{variant: variant, value: value, done: make(chan struct{})}
	close(k.done)
	p.forms.mu.Lock()
	defer p.forms.mu.Unlock()
	p.forms.put(slot, k)
}

// put is to be called with the lock.
func (f *Forms) put(slot any, k *kept) {
	if _, known := f.kept[slot]; f.kept == nil || !known && len(f.kept) >= mostSlots {
		f.kept = map[any]*kept{}
	}
	f.kept[slot] = k
}

// FormIn is Form among some forms.
func FormIn[T any](ctx context.Context, f *Forms, slot, variant any, make func() (T, error)) (T, error) {
	for {
		k, mine := f.reserve(slot, variant)
		if mine {
			return fill(f, slot, k, make)
		}
		select {
		case <-k.done:
			if !k.failed {
				return k.value.(T), nil
			}
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// reserve returns the form in a slot; mine says that the caller is to make it.
func (f *Forms) reserve(slot, variant any) (k *kept, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k = f.kept[slot]; k != nil && k.variant == variant {
		return k, false
	}
	k = &kept{variant: variant, failed: true, done: make(chan struct{})}
	f.put(slot, k)
	f.made++
	return k, true
}

// fill makes the form of a reserved slot, which is free again after an error or a panic.
func fill[T any](f *Forms, slot any, k *kept, make func() (T, error)) (T, error) {
	defer func() {
		if k.failed {
			f.mu.Lock()
			if f.kept[slot] == k {
				delete(f.kept, slot)
			}
			f.mu.Unlock()
		}
		close(k.done)
	}()
	value, err := make()
	if err == nil {
		k.value, k.failed = value, false
	}
	return value, err
}

// drop forgets all forms.
func (f *Forms) drop() {
	f.mu.Lock()
	f.kept = nil
	f.mu.Unlock()
}
