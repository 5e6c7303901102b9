package kernel

// The loops of arm64.

// candidates are the sets of every arm64: NEON is part of it.
func candidates() []loopSet { return []loopSet{neon, fused} }

//go:noescape
func panelNEON(a *panelArgs)

//go:noescape
func blendNEON(a *blendArgs)

//go:noescape
func weightedNEON(a *blendArgs)

//go:noescape
func dotNEON(a *dotArgs)

//go:noescape
func batchNEON(a *batchArgs)

//go:noescape
func transposeNEON(a *transposeArgs)

//go:noescape
func scatterNEON(a *scatterArgs)

func (x loopSet) panelVector(a *panelArgs)         { panelNEON(a) }
func (x loopSet) blendVector(a *blendArgs)         { blendNEON(a) }
func (x loopSet) weightedVector(a *blendArgs)      { weightedNEON(a) }
func (x loopSet) dotVector(a *dotArgs)             { dotNEON(a) }
func (x loopSet) batchVector(a *batchArgs)         { batchNEON(a) }
func (x loopSet) transposeVector(a *transposeArgs) { transposeNEON(a) }
func (x loopSet) scatterVector(a *scatterArgs)     { scatterNEON(a) }
