package cached

import "github.com/basetensor/basetensor/pkg/query"

// By reports whether a stage uses the cache: reparam-worker for networks, learn-worker for decompositions.
func By(stage string) bool { return stage == query.StageReparam || stage == query.StageLearn }
