package stage

import "github.com/basetensor/basetensor/pkg/query"

// Names returns the stages in the order in which a job passes them.
func Names() []string {
	return []string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate}
}
