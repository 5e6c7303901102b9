package faults

// The classes of faults: a table, a row each.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
)

// class is a kind of faults.
type class struct {
	name     string
	strike   func(ctx context.Context, b *batch) error // makes one fault, and returns when it is over
	every    time.Duration                             // about so long between two
	parallel int                                       // at the same time
	worth    float64                                   // number of other faults that one counts for
	goal     time.Duration                             // of the 99th percentile of recoveries; 0: none was set
	rules    rules
	about    string // for people
}

// rules say where a class can be run, and what may be lost under it although the system is right.
type rules struct {
	needs needs
	stack *ownStack // nil: the common one
	may   losses
}

// needs of a class; a set.
type needs int

func (n needs) include(one needs) bool { return n&one != 0 }

const (
	oneServer needs = 1 << iota
	cluster         // of three servers
	twoVersions
	anotherClock // workers whose clock is wrong
)

// losses that a class may cause; a set.
type losses int

func (may losses) include(one losses) bool { return may&one != 0 }

const (
	answers  losses = 1 << iota // may be deleted: another one, with the same bits, is no second
	models                      // may be deleted: the job is submitted again
	requests                    // large ones may be deleted: their jobs end with an error that says so
	registry                    // registered models may be lost
	retold                      // an answer may be told again: servers that all restart apply their log again
)

// ownStack is a stack that no other class has.
type ownStack struct {
	room    int64  // of all streams; 0: as deployed
	sync    string // sync_interval of the servers; empty: as deployed
	admin   bool   // somebody has the servers' system account
	prepare func(folder string) error
	clean   func(folder string)
}

// Recovery goals.
const (
	workerGoal = 5 * time.Second
	leaderGoal = 10 * time.Second
)

// Units of the table.
const (
	ms  = time.Millisecond
	sec = time.Second
)

// classes are all there are: name, strike, time between two, number at the same time, worth, goal, rules, and what happens.
var classes = []*class{
	{"kill-fetched", killAt(fetched), 500 * ms, 4, 1, workerGoal, anywhere, "SIGKILL just after a delivery"},
	{"kill-published", killAt(published), 500 * ms, 4, 1, workerGoal, anywhere,
		"SIGKILL between storage of an output and its acknowledgement"},
	{"kill-acking", killAt(acking), 500 * ms, 4, 1, workerGoal, anywhere, "SIGKILL at an acknowledgement, which is lost"},
	{"pause", onWorker(pauseWorker), 700 * ms, 4, 1, workerGoal, anywhere, "SIGSTOP of a worker, SIGCONT after 0.3 to 7 s"},
	{"memory", starve, 800 * ms, 3, 1, workerGoal, anywhere, "the kernel kills a worker that exceeds its control group's memory"},
	{"stop", onWorker(stopWorker), 500 * ms, 4, 1, workerGoal, anywhere, "SIGTERM of a worker"},

	{"cut", onWorker(cut), 500 * ms, 4, 1, workerGoal, anywhere, "a worker's connections to NATS are closed"},
	{"hole", onWorker(hole), 700 * ms, 4, 1, workerGoal, anywhere,
		"a worker's connections to NATS become black holes; new ones get no answer for 0 to 3 s"},
	{"half-open", onWorker(halfOpen), 700 * ms, 4, 1, workerGoal, anywhere,
		"a worker's connections to NATS end on one side only, or carry nothing to it"},
	{"delay", onWorker(delay), 700 * ms, 4, 1, 0, anywhere, "traffic between a worker and NATS is late by 20 to 800 ms, for 1 to 4 s"},
	{"slow", onWorker(slow), 700 * ms, 4, 1, 0, anywhere, "a worker takes 1 to 16 KB/s from NATS, for 1 to 6 s"},
	{"twice", onWorker(disorderly(func(g *gate, n int) { g.twice += n })), 500 * ms, 3, 1, 0, anywhere,
		"4 to 20 deliveries, publishes and acknowledgements of a worker pass twice"},
	{"swap", onWorker(disorderly(func(g *gate, n int) { g.swap += n })), 500 * ms, 3, 1, 0, anywhere,
		"4 to 20 of them change places with the next"},
	{"flip", onWorker(flip), 150 * ms, 4, 1, 0, anywhere,
		"one bit of a message to or from a worker changes: a model, network, task, partial, answer, blob or control"},
	{"replay", replay, 700 * ms, 1, 1, 0, anywhere, "up to 16 messages of a worker are published again after seconds"},

	{"server-kill", onServer(killed(0, 2*sec)), 2 * sec, 1, 3, leaderGoal, onOne,
		"SIGKILL of the only nats-server, started again after 0 to 2 s"},
	{"server-pause", onServer(paused(300*ms, 4*sec)), 2 * sec, 1, 3, leaderGoal, onOne,
		"SIGSTOP of the only nats-server, SIGCONT after 0.3 to 4 s"},
	{"disk", fillDisk, 1 * sec, 1, 10, 0, rules{needs: oneServer, stack: &ownStack{room: 64 << 20, prepare: mount, clean: unmount}},
		"the disk of the only nats-server is full; then it has room and is restarted"},
	{"leader-kill", onLeader(killed(1*sec, 4*sec)), 2 * sec, 1, 4, leaderGoal, onThree,
		"SIGKILL of the leader of a stream, started again after 1 to 4 s"},
	{"leader-pause", onLeader(paused(1*sec, 8*sec)), 2 * sec, 1, 4, leaderGoal, onThree,
		"SIGSTOP of such a leader, SIGCONT after 1 to 8 s"},
	{"rolling", restartServer, 2 * sec, 1, 4, leaderGoal, onThree, "the three servers are restarted one after the other"},
	{"partition", partition, 2 * sec, 1, 4, leaderGoal, onThree,
		"one of the three servers and the others hear nothing of each other for 1 to 8 s; clients reach all three"},
	{"rot", rot, 2 * sec, 1, 4, 0, rules{cluster, &ownStack{}, answers | models | requests | retold},
		"one of the three servers is killed, and half of its blocks change in a bit or are cut short: jobs are answered, perhaps again"},
	{"peer", replacePeer, 2 * sec, 1, 4, 0, rules{needs: cluster, stack: &ownStack{admin: true}},
		"one of the three servers is lost with its disk: it is removed from the cluster, and an empty one joins"},

	{"power", cutPower, 2 * sec, 1, 4, leaderGoal,
		rules{stack: &ownStack{room: powerRoom, prepare: mountImage, clean: unmount}, may: retold},
		"the power of all servers is cut: what they had not synced is lost"},
	{"power-late", cutPower, 2 * sec, 1, 4, 0,
		rules{stack: &ownStack{room: powerRoom, sync: "2m", prepare: mountImage, clean: unmount}, may: answers | models | requests | registry},
		"the same with sync_interval: 2m, nats-server's default: accepted jobs are lost, and clients submit them again"},

	{"redis-slow", onRedis(redisSlow), 1 * sec, 1, 1, 0, anywhere, "traffic with Redis is late by 20 to 300 ms, for 1 to 3 s"},
	{"redis-evict", redisBound("allkeys-lru"), 1 * sec, 1, 1, 0, anywhere, "Redis has room for few entries, for 1 to 3 s"},
	{"redis-full", redisBound("noeviction"), 1 * sec, 1, 1, 0, anywhere, "Redis has no room and refuses, for 1 to 3 s"},
	{"redis-flush", redisFlush, 300 * ms, 1, 1, 0, anywhere, "everything in Redis is deleted"},
	{"redis-poison", redisPoison, 300 * ms, 1, 1, 0, anywhere,
		"entries are cut short, changed in a bit or exchanged; a restarted worker reads them"},
	{"redis-kill", onRedis(killed(0, 1*sec)), 1 * sec, 1, 1, 0, anywhere, "SIGKILL of redis-server, started again after 0 to 1 s"},
	{"redis-pause", onRedis(paused(300*ms, 3*sec)), 1 * sec, 1, 1, 0, anywhere, "SIGSTOP of redis-server, SIGCONT after 0.3 to 3 s"},
	{"redis-cut", onRedis(redisCut), 300 * ms, 1, 1, 0, anywhere, "all connections to Redis are closed"},
	{"redis-hole", onRedis(redisHole), 1 * sec, 1, 1, 0, anywhere,
		"all connections to Redis become black holes; new ones get no answer for 0 to 2 s"},

	{"no-stream", deleteStream(bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamControl, bus.StreamDeadline), 4 * sec, 1,
		4, 0, anywhere, "the stream of networks, tasks, partials, controls or deadlines is deleted"},
	{"no-consumers", deleteConsumers, 4 * sec, 1, 4, 0, anywhere, "all consumers of a stage are deleted"},
	{"no-pieces", deletePieces, 2 * sec, 1, 4, 0, rules{may: requests},
		"some large networks, plans and requests, and pieces of them, are deleted"},
	{"no-answers", deleteStream(bus.StreamAnswer), 4 * sec, 1, 10, 0, rules{may: answers},
		"the stream of answers is deleted: jobs under way are answered, perhaps again"},
	{"no-models", deleteStream(bus.StreamModel), 4 * sec, 1, 10, 0, rules{may: models},
		"the stream of models is deleted: a client is told, and submits again"},

	{"versions", onWorker(changeVersion), 1 * sec, 1, 1, workerGoal, rules{needs: twoVersions},
		"rolling upgrades and downgrades: workers end in good order and are replaced by another version"},
	{"clock", onWorker(changeClock), 1 * sec, 1, 1, workerGoal, rules{needs: anotherClock},
		"a worker is replaced by one whose clock is wrong by 20 ms to 25 h"},
	{"each", strikeEach, 800 * ms, 3, 1, 0, rules{may: requests},
		"one fault of every class above that needs neither a cluster nor a stack or a version of its own, in turn, overlapping"},
}

// The usual rules.
var (
	anywhere = rules{}
	onOne    = rules{needs: oneServer}
	onThree  = rules{needs: cluster}
)

// find returns a class by its name, nil if there is none.
func find(name string) *class {
	for _, c := range classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// served reports whether a class is for so many servers.
func (c *class) served(three bool) bool {
	return !(c.rules.needs.include(cluster) && !three || c.rules.needs.include(oneServer) && three)
}

// equipped reports whether there is another version, and another clock, for a class that needs one.
func (c *class) equipped(o Options) bool {
	return !(c.rules.needs.include(twoVersions) && o.Old == "" || c.rules.needs.include(anotherClock) && len(o.Helper) == 0)
}

// choose returns the classes of these names, or all that can be run.
func choose(o Options) (list []*class, err error) {
	for _, name := range o.Classes {
		c := find(name)
		if c == nil {
			return nil, fmt.Errorf("faults: no class %q; there are %s", name, strings.Join(Classes(), ", "))
		}
		if !c.served(o.Cluster) {
			return nil, fmt.Errorf("faults: class %s: is not for %d servers", name, map[bool]int{false: 1, true: 3}[o.Cluster])
		}
		list = append(list, c)
	}
	if len(o.Classes) > 0 {
		return list, nil
	}
	for _, c := range classes {
		if c.served(o.Cluster) && c.equipped(o) {
			list = append(list, c)
		}
	}
	return list, nil
}

// Classes returns the names of all classes.
func Classes() []string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = c.name
	}
	return names
}

// common are the classes that strikeEach strikes with: those that one version and nothing deleted for good allow.
func common(o Options) (list []*class) {
	for _, c := range classes {
		if c.name != "each" && !c.rules.needs.include(cluster) && c.rules.stack == nil && !c.rules.may.include(answers|models) && c.equipped(o) {
			list = append(list, c)
		}
	}
	return list
}
