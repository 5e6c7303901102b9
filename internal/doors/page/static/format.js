// Numbers and times as text.

// decimals writes a logarithm with ten digits after the point, as btn does; what rounds to 0 has no sign.
export function decimals(x) {
  const text = x.toFixed(10)
  return /^-0\.0*$/.test(text) ? text.slice(1) : text
}

// digits writes a number to so many significant digits, 1e5 and beyond as a power.
export function digits(x, n = 3) {
  if (x === 0) return '0'
  const a = Math.abs(x)
  if (a >= 1e5 || a < 1e-4) return tidy(x.toExponential(n - 1))
  return String(Number(x.toPrecision(n)))
}

function tidy(text) {
  const [mantissa, exponent] = text.split('e')
  return mantissa.replace(/\.?0+$/, '') + 'e' + Number(exponent)
}

// magnitude writes e^ln to six digits, also far beyond the range of numbers; what is below 1 by more than rounding does not look like it.
export function magnitude(ln) {
  const x = Math.exp(ln)
  const below = -Math.expm1(ln)
  if (below > 1e-12 && below < 5e-7) return '1 − ' + digits(below, 2)
  if (x > 1e-300 && x < Infinity) return digits(x, 6)
  const power = Math.floor(ln / Math.LN10)
  const mantissa = (10 ** (ln / Math.LN10 - power)).toFixed(5)
  return mantissa === '10.00000' ? '1e' + (power + 1) : Number(mantissa) + 'e' + power
}

// rounded writes a value to the digits that its uncertainty leaves: two of the uncertainty's own.
export function rounded(x, uncertainty) {
  const places = uncertainty > 0 ? Math.min(10, Math.max(0, 1 - Math.floor(Math.log10(uncertainty)))) : 10
  const text = x.toFixed(places)
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text
}

// probability writes one of six digits; what is not 0 or 1 does not look like it.
export function probability(p) {
  if (p > 0 && p < 5e-7) return digits(p, 2)
  if (p < 1 && p >= 0.9999995) return '1 − ' + digits(1 - p, 2)
  return p.toFixed(6)
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let i = 0
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024
    i++
  }
  return (i ? String(Number(n.toPrecision(3))) : n) + ' ' + units[i]
}

export function count(n, thing) {
  return whole(n) + ' ' + thing + (n === 1 ? '' : 's')
}

export function whole(n) {
  return n < 1e15 ? Math.round(n).toLocaleString('en-GB') : digits(n)
}

// duration writes milliseconds.
export function duration(ms) {
  if (ms < 0) ms = 0
  if (ms < 0.1) return (1000 * ms).toFixed(0) + ' µs'
  if (ms < 10) return ms.toFixed(1) + ' ms'
  if (ms < 1000) return ms.toFixed(0) + ' ms'
  if (ms < 60e3) return (ms / 1000).toFixed(ms < 10e3 ? 2 : 1) + ' s'
  if (ms < 3600e3) return Math.floor(ms / 60e3) + ' min ' + Math.floor(ms % 60e3 / 1000) + ' s'
  if (ms < 86400e3) return Math.floor(ms / 3600e3) + ' h ' + Math.floor(ms % 3600e3 / 60e3) + ' min'
  return Math.floor(ms / 86400e3) + ' d ' + Math.floor(ms % 86400e3 / 3600e3) + ' h'
}

// ago writes when something was.
export function ago(ms) {
  const past = Date.now() - ms
  return past < 1000 ? 'now' : duration(Math.floor(past / 1000) * 1000).replace(/\.\d+ s/, ' s') + ' ago'
}

export function clock(ms) {
  return new Date(ms).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC')
}

