package simulate

// pool is the contract workers: a queue at the server, and per worker a buffer of messages fetched
// ahead. A message in the buffer of one worker is not another's, however idle that may be.
type pool struct {
	p        *pipeline
	all      *resource // for the count: one place per worker
	workers  []*resource
	prefetch int
	asked    fifo[int]              // workers that may be sent a message, the longest wait first
	queue    fifo[func(worker int)] // messages that wait at the server
}

func newPool(p *pipeline, all *resource, prefetch int) *pool {
	w := &pool{p: p, all: all, prefetch: prefetch}
	w.workers = make([]*resource, all.places)
	for i := range w.workers {
		w.workers[i] = &resource{e: &p.engine, places: 1}
	}
	for range prefetch { // in turn, so that the first messages are spread
		for i := range w.workers {
			w.asked.push(i)
		}
	}
	return w
}

// work is pipeline.work by one of the workers. A worker that fetches one message at a time asks for
// the next when it has acknowledged; one that fetches ahead asks when it begins one, and does not
// wait for the fetch.
func (w *pool) work(d float64, trips int, own bool, out func()) {
	w.send(func(worker int) {
		if w.prefetch == 1 {
			w.hold(worker, func() {
				w.p.trips(1, own, func() {
					w.p.process(d, trips, own, out, func() {
						w.free(worker)
						w.ask(worker)
					})
				})
			})
			return
		}

		w.p.trips(1, own, func() {
			w.hold(worker, func() {
				w.ask(worker)
				w.p.process(d, trips, own, out, func() { w.free(worker) })
			})
		})
	})
}

func (w *pool) hold(worker int, then func()) {
	w.workers[worker].acquire(func() { w.all.acquire(then) })
}

func (w *pool) free(worker int) {
	w.all.release()
	w.workers[worker].release()
}

// send gives a message to the worker that asked first, or lets it wait.
func (w *pool) send(message func(worker int)) {
	if worker, ok := w.asked.pop(); ok {
		message(worker)
		return
	}
	w.all.tally()
	w.all.outside++
	w.queue.push(message)
}

// ask tells the server that a worker has room for one more.
func (w *pool) ask(worker int) {
	message, ok := w.queue.pop()
	if !ok {
		w.asked.push(worker)
		return
	}
	w.all.tally()
	w.all.outside--
	message(worker)
}
