// Lists that people write, with commas between names or assignments. Names of the model may have commas and equals signs themselves.

const mostCommas = 16 // of one name

// listOf reads the parts of a text. A part is the longest one that known understands, else all up to the next comma, which other reads.
export function listOf(text, known, other) {
  const pieces = text.split(',')
  const list = []
  for (let from = 0; from < pieces.length;) {
    let to = Math.min(pieces.length, from + mostCommas + 1)
    let one = known(part(pieces, from, to))
    while (one === undefined && to > from + 1) one = known(part(pieces, from, --to))
    const plain = part(pieces, from, to)
    if (one !== undefined) list.push(one)
    else if (plain) list.push(other(plain))
    from = to
  }
  return list
}

const part = (pieces, from, to) => pieces.slice(from, to).join(',').trim()

// assignmentsOf reads smoke=no, age=0.2/0.8 as requests have it: values, and lists of probabilities. find(name) and value(v, name) return the
// position of a variable and of its value, −1 for none; refer says what requests call them.
export function assignmentsOf(text, { find, value, refer }) {
  const known = plain => {
    for (const { index } of plain.matchAll(/=/g)) {
      const v = find(plain.slice(0, index).trim())
      const said = plain.slice(index + 1).trim()
      const x = v < 0 ? -1 : value(v, said)
      if (x >= 0) return [refer.variable(v), refer.state(v, x)]
      if (v >= 0 && weights(said)) return [refer.variable(v), weights(said)]
    }
    return undefined
  }
  return Object.fromEntries(listOf(text, known, plain => {
    const at = plain.indexOf('=')
    if (at < 1) throw new Error(`${plain} is no assignment: VARIABLE=VALUE is needed`)
    const said = plain.slice(at + 1).trim()
    return [plain.slice(0, at).trim(), weights(said) || said]
  }))
}

// weights are numbers between slashes; null where the text is none.
function weights(text) {
  const numbers = text.split('/').map(Number)
  return numbers.length > 1 && numbers.every(x => x >= 0) ? numbers : null
}
