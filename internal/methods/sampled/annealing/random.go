package annealing

// Random words of eight chains, which depend only on a seed and on the chain's number.

// random is the state of eight generators: word k of chain c is random[k·8+c].
type random [4 * GroupSize]uint32

// newRandom returns the generators of chains first to first+7. Each depends only on the seed and the number of its chain.
func newRandom(seed, first uint64) (r random) {
	for c := range GroupSize {
		x := mixBits(seed ^ mixBits(first+uint64(c)))
		for k := range 4 {
			x = mixBits(x + uint64(k))
			r[k*GroupSize+c] = uint32(x >> 32)
		}
	}
	return r
}

// mixBits scrambles the bits of x: the finaliser of splitmix64 (Steele, Lea, Flood, 2014).
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// nextWord returns a random word of chain c: xoshiro128+ (Blackman, Vigna, 2018).
func (r *random) nextWord(c int) uint32 {
	s0, s1, s2, s3 := r[c], r[GroupSize+c], r[2*GroupSize+c], r[3*GroupSize+c]
	word := s0 + s3
	t := s1 << 9
	s2 ^= s0
	s3 ^= s1
	s1 ^= s2
	s0 ^= s3
	s2 ^= t
	s3 = s3<<11 | s3>>21
	r[c], r[GroupSize+c], r[2*GroupSize+c], r[3*GroupSize+c] = s0, s1, s2, s3
	return word
}
