package preprocess

// Queues of work.

// agenda is a queue of numbers, each in it once.
type agenda struct {
	list []int
	in   []bool // by number
}

func (a *agenda) len() int { return len(a.list) }

func (a *agenda) push(n int) {
	for n >= len(a.in) {
		a.in = append(a.in, false)
	}
	if !a.in[n] {
		a.in[n] = true
		a.list = append(a.list, n)
	}
}

func (a *agenda) pop() int {
	n := a.list[0]
	a.list = a.list[1:]
	a.in[n] = false
	return n
}
