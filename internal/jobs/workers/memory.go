package workers

// What a process remembers between jobs. A tenant with a cache of its own has a memory of its own, so that no other
// job's time or answer reveals anything about the tenant's jobs. All others share one. What is remembered under the
// digest of a blob needs no owner, because the blobs of an owner have digests of their own.

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

// maxOwners bounds the number of owners whose memory a process keeps.
const maxOwners = 16

// ownerMemory is what learn-worker and contract-worker remember between the jobs of an owner.
type ownerMemory struct {
	memo      proposal.Memo       // remembers plans; nil: no plan is remembered
	knowledge *plan.NetworkMemory // what the planner knows of networks
	shared    *sharedResults      // intermediate results, so that one stage does not derive again what the other has derived
}

// newMemory returns an empty memory for an owner; "" is everybody.
func (h *Host) newMemory(owner string) *ownerMemory {
	memory := &ownerMemory{shared: &sharedResults{}}
	if h.planMemo != nil {
		memory.memo = h.planMemo.Of(owner)
	}
	memory.knowledge = &plan.NetworkMemory{Problems: &memory.shared.Shared, Options: problem.Options{Threads: h.Threads}}
	return memory
}

// memoryOf returns what this process remembers for an owner, whose jobs share it with no others. The owner "" is
// everybody. Owners that come again after others have displaced them begin with an empty memory.
func (h *Host) memoryOf(owner string) *ownerMemory {
	if owner == "" {
		return h.everybody
	}
	if memory, ok := h.owners.Get(owner); ok {
		return memory
	}
	return h.owners.Add(owner, h.newMemory(owner), 0) // 0: only the number of owners is bounded, not the bytes
}

// hasOwnCache reports whether a tenant has a cache of its own, by the tenant's limits. Jobs without a tenant use
// everybody's.
func (h *Host) hasOwnCache(tenant string) bool {
	if h.Tenants == nil || tenant == "" {
		return false
	}
	_, limits := h.Tenants.Tenants().Limits(tenant)
	return limits.Cache == admission.CacheOwn
}

// cacheOwner returns the owner of what is remembered of a tenant's job; "" is everybody.
func cacheOwner(tenant string, ownCache bool) string {
	if !ownCache {
		return ""
	}
	return cache.Owner(tenant)
}

// resultsKept is the time for which intermediate results are kept after a task: for a million variables they are a
// gigabyte.
const resultsKept = 5 * time.Second

// sharedResults keeps intermediate results for the plans and tasks of one process. It drops them when no plan and no
// task has been in work for resultsKept.
type sharedResults struct {
	problem.Shared
	mu     sync.Mutex
	inWork int         // plans and tasks
	timer  *time.Timer // drops the results; it runs while no plan or task is in work
}

// startUse returns the intermediate results for a plan or task that begins. The caller calls end when the plan or task
// has ended.
func (s *sharedResults) startUse() (results *problem.Shared, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork++
	if s.timer != nil {
		s.timer.Stop()
	}
	return &s.Shared, s.endUse
}

// endUse notes that a plan or task has ended. After the last one, the results are dropped when resultsKept has passed.
func (s *sharedResults) endUse() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork--
	if s.inWork == 0 {
		s.timer = time.AfterFunc(resultsKept, s.Drop)
	}
}

// Bounds of decodedBlobs. A few blobs are enough, because all tasks of a job name the same network and plan.
const (
	decodedEntries = 32
	decodedBytes   = 512 << 20 // the sum of the encoded sizes
)

// decodedBlobs keeps the most recently used blobs of one type in decoded form.
type decodedBlobs[T any] struct {
	decode func([]byte) (T, error)
	values memo.LRU[string, T]
}

// newDecodedBlobs returns an empty store for blobs that decode decodes.
func newDecodedBlobs[T any](decode func([]byte) (T, error)) *decodedBlobs[T] {
	return &decodedBlobs[T]{
		decode: decode,
		values: memo.LRU[string, T]{Entries: decodedEntries, Bytes: decodedBytes},
	}
}

// get returns the decoded blob of a digest. If the blob's bytes came with the message that names it, they are data, and
// are checked against the digest. Otherwise data is nil, and get fetches the blob. If two callers decode a blob at the
// same time, both get one value.
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

// decodeNetwork decodes a stored network and validates it, because the codec checks the encoding and not the conditions
// of the definition.
func decodeNetwork(b []byte) (*btn.Network, error) {
	net, err := message.DecodeNetwork(b)
	if err != nil {
		return nil, err
	}
	return net, net.Validate()
}
