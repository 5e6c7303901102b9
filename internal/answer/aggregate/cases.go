package aggregate

// The sum over many cases.

// reportCases fills in what the cases of a demand add up to: their ln Z stands in the place of ln Z.
func (r *estimate) reportCases(to *Total) {
	if len(r.Parts) != 1 || r.Parts[0].Cases == nil {
		return
	}
	to.Cases = r.Parts[0].Cases
	if to.Cases.Impossible == 0 {
		to.Result.LogZ = finite(to.Cases.Ln)
	}
}
