package compressed

// Projectors of an earlier contraction on other entries.

// reuse returns the next projector, and how badly it fits: the residual of the bond without any gauge.
func (r *run) reuse(a, b int32, rows int) (Projector, error) {
	if r.taken >= len(r.o.Projectors.Pairs) {
		return Projector{}, planError("%d projectors are too few", len(r.o.Projectors.Pairs))
	}
	p := r.o.Projectors.Pairs[r.taken]
	r.taken++
	if p.Rows != rows || p.Cols < 1 || p.Cols > r.o.Bond || len(p.Left) != rows*p.Cols || len(p.Right) != rows*p.Cols {
		return Projector{}, planError("projector %d is %d × %d, the wire has dimension %d", r.taken-1, p.Rows, p.Cols, rows)
	}
	r.value.Truncated = true
	res, err := r.residual(a, b, p)
	r.value.Discarded = max(r.value.Discarded, res)
	return p, err
}

// residual is ‖A Bᵀ − A P P'ᵀ Bᵀ‖² / ‖A Bᵀ‖².
func (r *run) residual(a, b int32, p Projector) (float64, error) {
	var t [2][]float64
	var err error
	for i, end := range [2][2]int32{{a, b}, {b, a}} {
		if t[i], err = r.triangleOf(end[0], end[1], nil, nil); err != nil {
			return 0, err
		}
	}
	ka, kb := len(t[0])/p.Rows, len(t[1])/p.Rows
	whole, part := make([]float64, ka*kb), make([]float64, ka*kb)
	left, right := make([]float64, ka*p.Cols), make([]float64, kb*p.Cols)
	r.MulTB(whole, t[0], t[1], ka, p.Rows, kb)
	r.Mul(left, t[0], p.Left, ka, p.Rows, p.Cols)
	r.Mul(right, t[1], p.Right, kb, p.Rows, p.Cols)
	r.MulTB(part, left, right, ka, p.Cols, kb)
	total := squares(whole)
	if total == 0 {
		return 0, errZero
	}
	for i := range part {
		part[i] -= whole[i]
	}
	return squares(part) / total, nil
}
