package kernel

// The loops of arm64.

// candidates are the sets of every arm64: NEON is part of it.
func candidates() []set { return []set{neon, fused} }

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

func (x set) panelVector(a *panelArgs)         { panelNEON(a) }
func (x set) blendVector(a *blendArgs)         { blendNEON(a) }
func (x set) weightedVector(a *blendArgs)      { weightedNEON(a) }
func (x set) dotVector(a *dotArgs)             { dotNEON(a) }
func (x set) batchVector(a *batchArgs)         { batchNEON(a) }
func (x set) transposeVector(a *transposeArgs) { transposeNEON(a) }
func (x set) scatterVector(a *scatterArgs)     { scatterNEON(a) }
