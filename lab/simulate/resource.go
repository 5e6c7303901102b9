package simulate

// resource is something with a limited number of places: cores, the server's threads, the slots of a stage. Waiting
// functions are served in turn.
type resource struct {
	e       *engine
	name    string
	places  int // 0: no bound
	held    int
	outside int // waiters elsewhere
	waiting fifo[func()]

	since float64 // when counting began, or the state last changed
	busy  float64 // ∫ held dt since counting began
	queue float64 // ∫ waiting dt
	begun float64
}

// acquire calls got as soon as a place is free.
func (r *resource) acquire(got func()) {
	r.tally()
	if r.places > 0 && r.held == r.places {
		r.waiting.push(got)
		return
	}
	r.held++
	got()
}

// release hands the place to the longest waiting function.
func (r *resource) release() {
	r.tally()
	if next, ok := r.waiting.pop(); ok {
		next()
		return
	}
	r.held--
}

// use holds a place for d milliseconds, then calls then.
func (r *resource) use(d float64, then func()) {
	if d <= 0 {
		then()
		return
	}
	r.acquire(func() {
		r.e.after(d, func() {
			r.release()
			then()
		})
	})
}

// tally brings the integrals up to now.
func (r *resource) tally() {
	d := r.e.now - r.since
	r.busy += float64(r.held) * d
	r.queue += float64(r.waiting.len()+r.outside) * d
	r.since = r.e.now
}

// restart begins counting now.
func (r *resource) restart() {
	r.since, r.begun, r.busy, r.queue = r.e.now, r.e.now, 0, 0
}

// fifo is a queue.
type fifo[T any] struct {
	list []T
	head int
}

func (f *fifo[T]) len() int { return len(f.list) - f.head }

func (f *fifo[T]) push(x T) { f.list = append(f.list, x) }

// pop takes the first, if there is one.
func (f *fifo[T]) pop() (x T, ok bool) {
	if f.head == len(f.list) {
		return x, false
	}
	var none T
	x, f.list[f.head] = f.list[f.head], none
	if f.head++; f.head > 1024 && 2*f.head > len(f.list) {
		f.list, f.head = append([]T{}, f.list[f.head:]...), 0
	}
	return x, true
}
