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
const mostKept = 16

// kept is what learn-worker and contract-worker keep between the jobs of an owner.
type kept struct {
	memo   proposal.Memo // nil: nothing is remembered
	known  *plan.Known   // of networks, for the planner
	shared *shared       // one stage does not derive again what the other has derived
}

// newKept returns the memory of an owner, of everybody without one.
func (h *Host) newKept(owner string) *kept {
	k := &kept{shared: &shared{}}
	if h.plansOf != nil {
		k.memo = h.plansOf.Of(owner)
	}
	k.known = &plan.Known{Problems: &k.shared.Shared, Options: problem.Options{Threads: h.Threads}}
	return k
}

// keptOf returns the memory of an owner, of everybody without one.
func (h *Host) keptOf(owner string) *kept {
	if owner == "" {
		return h.kept
	}
	if k, ok := h.keptBy.Get(owner); ok {
		return k
	}
	return h.keptBy.Add(owner, h.newKept(owner), 0)
}

// ownCache reports whether a tenant's jobs find only what is remembered of its own. Jobs without a tenant are everybody's.
func (h *Host) ownCache(tenant string) bool {
	if h.Tenants == nil || tenant == "" {
		return false
	}
	_, limits := h.Tenants.Tenants().Limits(tenant)
	return limits.Cache == admission.CacheOwn
}

// ownerOf returns the owner of what is remembered of a tenant's job, "" for everybody.
func ownerOf(tenant string, ownCache bool) string {
	if !ownCache {
		return ""
	}
	return cache.Owner(tenant)
}

// keepShared is the time for which intermediate results are kept after a task: for a million
// variables they are a gigabyte.
const keepShared = 5 * time.Second

// shared keeps intermediate results for the plans and tasks of one process. It drops them when neither
// has been in work for keepShared.
type shared struct {
	problem.Shared
	mu     sync.Mutex
	inWork int
	timer  *time.Timer // that drops them; it runs while no task is in work
}

// hold returns the intermediate results for a plan or task that begins; end is to be called when it has
// ended.
func (s *shared) hold() (of *problem.Shared, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork++
	if s.timer != nil {
		s.timer.Stop()
	}
	return &s.Shared, s.end
}

// end notes that a task has ended.
func (s *shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork--
	if s.inWork == 0 {
		s.timer = time.AfterFunc(keepShared, s.Drop)
	}
}

// Bounds of the decoded blobs that are kept: their number, and the sum of their encoded sizes. All
// tasks of a job name the same network and plan.
const (
	keepDecoded      = 32
	keepDecodedBytes = 512 << 20
)

// decoded keeps the most recently used blobs of one type in decoded form.
type decoded[T any] struct {
	decode func([]byte) (T, error)
	known  memo.LRU[string, T]
}

func newDecoded[T any](decode func([]byte) (T, error)) *decoded[T] {
	return &decoded[T]{
		decode: decode,
		known:  memo.LRU[string, T]{Entries: keepDecoded, Bytes: keepDecodedBytes},
	}
}

// of returns the decoded blob of a digest, whose bytes may have come with the message that names it (data, nil if they did not). These
// are checked against the digest. Two callers may both decode it; both are given the value of one of them.
func (c *decoded[T]) of(ctx context.Context, blobs *bus.Blobs, digest string, data []byte) (T, error) {
	if value, ok := c.known.Get(digest); ok {
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
	return c.known.Add(digest, value, int64(len(data))), nil
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
