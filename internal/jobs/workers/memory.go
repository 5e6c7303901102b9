package workers

// What a process remembers between jobs, of everybody together and of each tenant with a cache of its own: nobody else's time or answer
// tells anything of that one. Memories under the digest of a blob need no owner, because an owner's blobs have digests of their own.

import (
	"context"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// mostKept bounds the owners of which a process keeps more than the cache does.
const mostOwners = 16

// kept is what learn-worker and contract-worker keep between the jobs of an owner.
type ownerMemory struct {
	memo   proposal.Memo  // nil: nothing is remembered
	known  *plan.Known    // of networks, for the planner
	shared *sharedResults // one stage does not derive again what the other has derived
}

// newKept returns the memory of an owner, of everybody without one.
func (h *Host) newMemory(owner string) *ownerMemory {
	k := &ownerMemory{shared: &sharedResults{}}
	if h.planMemo != nil {
		k.memo = h.planMemo.Of(owner)
	}
	k.known = &plan.Known{Problems: &k.shared.Shared, Options: problem.Options{Threads: h.Threads}}
	return k
}

// keptOf returns the memory of an owner, of everybody without one.
func (h *Host) memoryOf(owner string) *ownerMemory {
	if owner == "" {
		return h.everybody
	}
	if k, ok := h.owners.Get(owner); ok {
		return k
	}
	return h.owners.Add(owner, h.newMemory(owner), 0)
}

// ownCache reports whether a tenant's jobs find only what is remembered of its own. Jobs without a tenant are everybody's.
func (h *Host) hasOwnCache(tenant string) bool {
	if h.Tenants == nil || tenant == "" {
		return false
	}
	_, limits := h.Tenants.Tenants().Limits(tenant)
	return limits.Cache == admission.CacheOwn
}

// ownerOf returns the owner of what is remembered of a tenant's job, "" for everybody.
func cacheOwner(tenant string, ownCache bool) string {
	if !ownCache {
		return ""
	}
	return cache.Owner(tenant)
}

// keepShared is the time for which intermediate results are kept after a task: for a million
// variables they are a gigabyte.
const keepResults = 5 * time.Second

// shared keeps intermediate results for the plans and tasks of one process. It drops them when neither
// has been in work for keepShared.
type sharedResults struct {
	problem.Shared
	mu     sync.Mutex
	inWork int
	timer  *time.Timer // that drops them; it runs while no task is in work
}

// hold returns the intermediate results for a plan or task that begins; end is to be called when it has
// ended.
func (s *sharedResults) begin() (of *problem.Shared, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork++
	if s.timer != nil {
		s.timer.Stop()
	}
	return &s.Shared, s.end
}

// end notes that a task has ended.
func (s *sharedResults) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork--
	if s.inWork == 0 {
		s.timer = time.AfterFunc(keepResults, s.Drop)
	}
}

// Bounds of the decoded blobs that are kept: their number, and the sum of their encoded sizes. All
// tasks of a job name the same network and plan.
const (
	decodedEntries = 32
	decodedBytes   = 512 << 20
)

// decoded keeps the most recently used blobs of one type in decoded form.
type decodedBlobs[T any] struct {
	decode func([]byte) (T, error)
	values memo.LRU[string, T]
}

func newDecodedBlobs[T any](decode func([]byte) (T, error)) *decodedBlobs[T] {
	return &decodedBlobs[T]{
		decode: decode,
		values: memo.LRU[string, T]{Entries: decodedEntries, Bytes: decodedBytes},
	}
}

// of returns the decoded blob of a digest, whose bytes may have come with the message that names it (data, nil if they did not). These
// are checked against the digest. Two callers may both decode it; both are given the value of one of them.
func (c *decodedBlobs[T]) get(ctx context.Context, blobs *bus.Blobs, digest string, data []byte) (T, error) {
	if value, ok := c.values.Get(digest); ok {
		return value, nil
	}

	var none T
	if data == nil {
		var err error
		if data, err = blobs.Get(ctx, digest); err != nil {
			return none, err
		}
	} else if wire.Digest(data) != digest {
		return none, fault.New(fault.BadInput,
			"pipeline: the plan in the message does not have the digest %s", digest)
	}

	value, err := c.decode(data)
	if err != nil {
		return value, err
	}
	return c.values.Add(digest, value, int64(len(data))), nil
}

// decodeNetwork decodes a stored network and validates it: the codec checks the encoding, not the
// conditions of the definition.
func decodeNetwork(b []byte) (*btn.Network, error) {
	n, err := message.DecodeNetwork(b)
	if err != nil {
		return nil, err
	}
	return n, n.Validate()
}
