package cached

import "github.com/basetensor/basetensor/pkg/query"

// By reports whether a stage has a cache: reparam-worker of networks, learn-worker of decompositions.
func By(stage string) bool { return stage == query.StageReparam || stage == query.StageLearn }
