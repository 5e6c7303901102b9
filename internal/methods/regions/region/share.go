package region

// Shares of a family: which of its regions a component has, before their number is known.

// shares is log2 of the whole of a family in units of a Share: the regions of a slice are not
// counted before its evidence is known.
const shares = 20

// Share returns the bound between part k−1 and part k of n, in 2^20ths of the family.
func Share(k, n int) int64 { return int64(k) << shares / int64(n) }

// InShare returns the regions [from, to) of n that lie between two shares.
func InShare(n int, low, high int64) (from, to int) {
	at := func(share int64) int { return int(share * int64(n) >> shares) }
	return at(low), at(high)
}
