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

func (x set) panelVector(a *panelArgs)    { panelNEON(a) }
func (x set) blendVector(a *blendArgs)    { blendNEON(a) }
func (x set) weightedVector(a *blendArgs) { weightedNEON(a) }
func (x set) dotVector(a *dotArgs)        { dotNEON(a) }
