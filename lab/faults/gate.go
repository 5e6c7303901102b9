package faults

// A proxy between one worker and the servers of one kind, which sees the traffic and acts on it.

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// point is a place in the life of a message at which something may be done to a worker.
type point string

const (
	fetched   point = "fetched"   // a delivery was given to the worker
	published point = "published" // the stream has stored a worker's message, and the worker has not heard of it
	acking    point = "acking"    // the worker says that a message is done, and the server does not hear of it
)

// gate is a worker's way to servers: a listener for each of them.
type gate struct {
	nats      bool // the protocol is read; else bytes pass
	listeners []net.Listener

	mu     sync.Mutex
	closed bool
	links  map[*link]bool
	refuse bool          // new connections get no answer
	delay  time.Duration // of every frame, to which up to as much again is added
	rate   int           // bytes a second to the worker; 0: all there are
	twice  int           // frames that are passed on twice
	swap   int           // frames that change places with the next one
	flips  int           // messages of which one bit changes
	rng    *rand.Rand

	armed   point
	trigger func()
	fired   chan struct{}

	open     map[string]carried // deliveries that are not settled, by the subject of their acknowledgement
	waiting  map[string]carried // publishes without the stream's word, by inbox
	captured []*frame           // the last publishes
}

// carried is a message of a job, and when it passed.
type carried struct {
	job string
	at  time.Time
}

// link is one connection of the worker, and the one to the server that belongs to it.
type link struct {
	g              *gate
	client, server net.Conn
	dead           chan struct{} // closed with the link
	once           sync.Once

	mu         sync.Mutex
	lost, deaf bool // nothing passes; nothing passes to the worker
}

// newGate opens a gate to the servers at these addresses.
func newGate(nats bool, seed uint64, addresses []string) (*gate, error) {
	g := &gate{
		nats: nats, links: map[*link]bool{}, open: map[string]carried{}, waiting: map[string]carried{},
		rng: rand.New(rand.NewPCG(seed, 0x67617465)),
	}
	for _, address := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			g.close()
			return nil, err
		}
		g.listeners = append(g.listeners, l)
		go g.accept(l, address)
	}
	return g, nil
}

// addresses returns the gate's addresses, one for each server.
func (g *gate) addresses() []string {
	all := make([]string, len(g.listeners))
	for i, l := range g.listeners {
		all[i] = l.Addr().String()
	}
	return all
}

func (g *gate) accept(l net.Listener, address string) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go g.connect(client, address)
	}
}

func (g *gate) connect(client net.Conn, address string) {
	k := &link{g: g, client: client, dead: make(chan struct{})}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		client.Close()
		return
	}
	g.links[k] = true
	k.lost = g.refuse
	g.mu.Unlock()
	if k.lost {
		return // until the link is closed
	}

	server, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		k.close()
		return
	}
	k.mu.Lock()
	k.server = server
	k.mu.Unlock()
	go k.pump(client, server, true)
	k.pump(server, client, false)
}

// close ends both connections of a link.
func (k *link) close() {
	k.once.Do(func() {
		close(k.dead)
		k.client.Close()
		k.mu.Lock()
		if k.server != nil {
			k.server.Close()
		}
		k.mu.Unlock()
		k.g.mu.Lock()
		delete(k.g.links, k)
		k.g.mu.Unlock()
	})
}

// stuck reports whether nothing passes in a direction any more.
func (k *link) stuck(up bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost || k.deaf && !up
}

// parcel is a unit of writing to one side.
type parcel struct {
	raw   []byte
	at    time.Time
	after func() // is called when it has been written
}

// pump passes on the bytes from one side.
func (k *link) pump(from, to net.Conn, up bool) {
	defer func() {
		if !k.stuck(up) { // a lost peer does not hear of the end either
			k.close()
		}
	}()
	parcels := make(chan parcel, 4096)
	defer close(parcels)
	go k.write(to, parcels, up)

	r := bufio.NewReaderSize(from, 64<<10)
	var kept *frame // that lets the next one pass
	for {
		f, err := k.read(r)
		if err != nil {
			return
		}
		send := []*frame{f}
		var after func()
		if k.g.nats {
			var drop bool
			if after, drop = k.g.observe(f, up); drop {
				after()
				continue
			}
			send = k.g.disorder(k.g.flip(f, up), &kept, up)
		}
		for i, one := range send {
			p := parcel{raw: one.raw, at: k.g.due()}
			if i == len(send)-1 {
				p.after = after
			}
			select {
			case parcels <- p:
			case <-k.dead:
				return
			}
		}
	}
}

func (k *link) read(r *bufio.Reader) (*frame, error) {
	if k.g.nats {
		return readFrame(r)
	}
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	b := make([]byte, r.Buffered())
	n, err := r.Read(b)
	return &frame{raw: b[:n]}, err
}

// write sends parcels when they are due, as fast as the gate lets them pass. Stuck parcels wait for the end of the link.
func (k *link) write(to net.Conn, parcels <-chan parcel, up bool) {
	w := bufio.NewWriterSize(to, 64<<10)
	for p := range parcels {
		if wait := time.Until(p.at); !p.at.IsZero() && wait > 0 {
			w.Flush()
			select {
			case <-time.After(wait):
			case <-k.dead:
				return
			}
		}
		if rate := k.g.throttle(); rate > 0 && !up {
			w.Flush()
			select {
			case <-time.After(time.Duration(len(p.raw)) * time.Second / time.Duration(rate)):
			case <-k.dead:
				return
			}
		}
		if k.stuck(up) {
			<-k.dead
			return
		}
		if _, err := w.Write(p.raw); err != nil {
			k.close()
			return
		}
		if len(parcels) == 0 || p.after != nil {
			if w.Flush() != nil {
				k.close()
				return
			}
		}
		if p.after != nil {
			p.after()
		}
	}
}

// due is when a frame read now is to be passed on; zero: at once.
func (g *gate) due() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.delay == 0 {
		return time.Time{}
	}
	return time.Now().Add(g.delay)
}

func (g *gate) throttle() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rate
}

// keepCaptured is the number of publishes that are kept to be sent again later.
const keepCaptured = 64

// observe notes a frame that passes. If it is the one that the gate is armed for it returns the action to run once it has
// passed or, with drop, instead of passing it.
func (g *gate) observe(f *frame, up bool) (after func(), drop bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !up && f.delivery():
		g.open[f.reply] = carried{f.job(), time.Now()}
		if g.armed == fetched {
			return g.fire(), false
		}
	case up && f.publication():
		g.waiting[f.reply] = carried{f.job(), time.Now()}
		if len(g.captured) == keepCaptured {
			g.captured = g.captured[1:]
		}
		g.captured = append(g.captured, f)
	case !up && g.waiting[f.subject].job != "":
		delete(g.waiting, f.subject)
		if g.armed == published {
			return g.fire(), true
		}
	case up:
		if f.acknowledges() && g.armed == acking {
			return g.fire(), true
		}
		if of, last := f.settles(); last {
			delete(g.open, of)
		}
	}
	return nil, false
}

// fire disarms the gate. The caller holds the lock.
func (g *gate) fire() func() {
	do, fired := g.trigger, g.fired
	g.armed, g.trigger = "", nil
	return func() {
		do()
		close(fired)
	}
}

// arm has do called when a message is at that point next. The channel is closed then.
func (g *gate) arm(at point, do func()) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed, g.trigger, g.fired = at, do, make(chan struct{})
	return g.fired
}

// disarm reports whether the gate was armed still.
func (g *gate) disarm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.armed != ""
	g.armed, g.trigger = "", nil
	return was
}

// disorder returns the frames to be passed on now, in place of one that came: it may come twice, or after the next one.
// Only messages are treated so: the rest of the protocol is a conversation.
func (g *gate) disorder(f *frame, kept **frame, up bool) []*frame {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []*frame{f}
	settled, _ := f.settles()
	is := up && (f.publication() || settled != "") || !up && f.delivery()
	switch {
	case *kept != nil:
		list = append(list, *kept)
		*kept = nil
	case is && g.swap > 0:
		g.swap--
		*kept = f
		return nil
	}
	if is && g.twice > 0 {
		g.twice--
		list = append(list, f)
	}
	return list
}

// flip returns a frame with one bit of its headers or payload changed, if it is a message of the workers' and one is to be changed.
func (g *gate) flip(f *frame, up bool) *frame {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flips == 0 || len(f.body) == 0 || !f.carries(up) {
		return f
	}
	g.flips--
	changed := *f
	changed.raw = slices.Clone(f.raw)
	from := len(f.raw) - len("\r\n") - len(f.body)
	changed.body = changed.raw[from : from+len(f.body)]
	bit := g.rng.IntN(8 * len(f.body))
	changed.body[bit/8] ^= 1 << (bit % 8)
	return &changed
}

// set changes how the gate passes frames on.
func (g *gate) set(change func(*gate)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

// each calls f with all links.
func (g *gate) each(f func(*link)) {
	g.mu.Lock()
	var all []*link
	for k := range g.links {
		all = append(all, k)
	}
	g.mu.Unlock()
	for _, k := range all {
		f(k)
	}
}

// cut ends all connections on both sides.
func (g *gate) cut() { g.each((*link).close) }

// swallow makes a black hole of the connections there are, for good: neither side hears of the other, nor of its end. New
// ones are not answered until admit.
func (g *gate) swallow() {
	g.set(func(g *gate) { g.refuse = true })
	g.each(func(k *link) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lost = true
	})
}

// admit lets new connections pass again. Those that came meanwhile are closed.
func (g *gate) admit() {
	g.set(func(g *gate) { g.refuse = false })
	g.each(func(k *link) {
		k.mu.Lock()
		unanswered := k.server == nil
		k.mu.Unlock()
		if unanswered {
			k.close()
		}
	})
}

// halve leaves connections open on one side only: the worker's end is closed without the server's knowledge, or the
// server's messages do not arrive any more.
func (g *gate) halve(worker bool) {
	g.each(func(k *link) {
		k.mu.Lock()
		k.lost, k.deaf = worker, !worker
		k.mu.Unlock()
		if worker {
			k.client.Close()
		}
	})
}

// bury closes the connections that swallow and halve have left open.
func (g *gate) bury() {
	g.each(func(k *link) {
		if k.stuck(false) {
			k.close()
		}
	})
}

// holds returns the jobs of the messages that the worker has, or whose storing it waits for, each with the time since when. It
// forgets them if the worker is gone.
func (g *gate) holds(gone bool) map[string]time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	jobs := map[string]time.Time{}
	for _, all := range []map[string]carried{g.open, g.waiting} {
		for _, one := range all {
			if first, known := jobs[one.job]; !known || one.at.Before(first) {
				jobs[one.job] = one.at
			}
		}
		if gone {
			clear(all)
		}
	}
	return jobs
}

// recent returns the last messages that the worker published.
func (g *gate) recent() []*frame {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.captured)
}

// close ends the gate.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	for _, l := range g.listeners {
		l.Close()
	}
	g.cut()
}
