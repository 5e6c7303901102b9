package cached

import "github.com/basetensor/basetensor/pkg/query"

// UsesCache reports whether a stage uses the cache: reparam-worker for networks, learn-worker for decompositions.
func UsesCache(stage string) bool { return stage == query.StageReparam || stage == query.StageLearn }
