package workers

// What a process remembers between jobs, of everybody together and of each tenant with a cache of its own: nobody else's time or answer
// tells anything of that one. Memories under the digest of a blob need no owner, because an owner's blobs have digests of their own.

import (
	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/queue/admission"
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
