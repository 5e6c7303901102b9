package aggregate

// The sum over many cases.

// reportCases fills in the sum over the cases of a demand, and puts it in the place of ln Z unless a case is impossible. It does nothing
// if the estimate has no cases.
func (r *estimate) reportCases(total *Total) {
	if len(r.Parts) != 1 || r.Parts[0].Cases == nil {
		return
	}
	total.Cases = r.Parts[0].Cases
	if total.Cases.Impossible == 0 {
		total.Result.LogZ = finite(total.Cases.Ln)
	}
}
