// What the address of a graph says beside its model, so that it can be passed on: evidence, soft evidence, whether the most probable
// explanation is shown, and with how many next best ones. The words are those that the HTTP API takes in an address:
// evidence=VARIABLE=VALUE, mpe=true, best=5.

const ours = /^(evidence|likelihood|mpe|best)=/

export const mostBest = 1000 // assignments of a query

// bestOf is a number of best assignments as somebody writes it; 1 where it is none.
export const bestOf = text => Math.min(mostBest, Math.max(1, Math.round(Number(text)) || 1))

// writeAddress returns a query with what is seen in place of what it said; own says that the model has evidence without one.
export function writeAddress(query, { evidence, mpe, best }, refer, own) {
  const parts = query.split('&').filter(part => part && !ours.test(part))
  for (const [v, seen] of [...evidence].sort((a, b) => a[0] - b[0])) {
    const variable = encodeURIComponent(refer.variable(v))
    parts.push(seen.weights ? `likelihood=${variable}=${seen.weights.join(',')}` : `evidence=${variable}=${encodeURIComponent(refer.state(v, seen.value))}`)
  }
  if (own && !evidence.size) parts.push('evidence=')
  if (mpe) parts.push('mpe=true')
  if (mpe && best > 1) parts.push('best=' + best)
  return parts.join('&')
}

// readAddress returns what a query says: evidence, null where it says none, and in wrong what the model does not have.
export function readAddress(query, graph, refer) {
  const said = query.split('&').filter(part => ours.test(part)).map(part => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)])
  const last = name => said.findLast(([key]) => key === name)?.[1]
  const seen = { evidence: null, mpe: last('mpe') === 'true', best: bestOf(last('best')), wrong: [] }
  const position = new Map()
  if (said.length) graph.variables.forEach((_, v) => position.set(attempt(() => refer.variable(v)), v))
  for (const [key, text] of said) {
    if (key === 'mpe' || key === 'best') continue
    seen.evidence ||= new Map()
    if (!text) continue
    const all = readings(text)
    const one = all.map(([variable, value]) => observation(key, position.get(variable), value)).find(found => found && !seen.evidence.has(found[0]))
    if (one) seen.evidence.set(...one)
    else seen.wrong.push(all.length ? all[0].join(' = ') : decoded(text) + ' = ')
  }
  return seen

  function observation(key, v, value) {
    if (v === undefined) return null
    const one = key === 'evidence' ? observed(graph, refer, v, value) : weighed(graph, v, value)
    return one && [v, one]
  }
}

// readings are the pairs that VARIABLE=VALUE may be. Names may have the sign, in other programs' addresses between them too as %3D.
function readings(text) {
  const plain = decoded(text)
  return [...cuts(text).map(pair => pair.map(decoded)), ...cuts(plain)]
}

const cuts = text => [...text.matchAll(/=/g)].map(({ index }) => [text.slice(0, index), text.slice(index + 1)])

function observed(graph, refer, v, value) {
  for (let x = 0; x < graph.variables[v].domain; x++) if (attempt(() => refer.state(v, x)) === value) return { value: x }
  return null
}

function weighed(graph, v, value) {
  const weights = value.split(',').map(text => text.trim() === '' ? NaN : Number(text))
  const good = weights.length === graph.variables[v].domain && weights.every(w => w >= 0 && w < Infinity) && weights.some(w => w > 0)
  return good ? { weights } : null
}

function decoded(text) {
  const spaced = text.replaceAll('+', ' ') // as in the addresses of the HTTP API
  return attempt(() => decodeURIComponent(spaced)) ?? spaced
}

// attempt returns undefined where f fails: what has no name of its own.
function attempt(f) {
  try {
    return f()
  } catch {
    return undefined
  }
}
