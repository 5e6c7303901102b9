// What the address of a graph says beside its model, so that it can be passed on: evidence, soft evidence, and whether the most probable
// explanation is shown. The words are those that the HTTP API takes in an address: evidence=VARIABLE=VALUE, mpe=true.

const ours = /^(evidence|likelihood|mpe)=/

// writeAddress returns a query with what is seen in place of what it said; own says that the model has evidence without one.
export function writeAddress(query, { evidence, mpe }, refer, own) {
  const parts = query.split('&').filter(part => part && !ours.test(part))
  for (const [v, seen] of [...evidence].sort((a, b) => a[0] - b[0])) {
    const variable = encodeURIComponent(refer.variable(v))
    parts.push(seen.weights ? `likelihood=${variable}=${seen.weights.join(',')}` : `evidence=${variable}=${encodeURIComponent(refer.state(v, seen.value))}`)
  }
  if (own && !evidence.size) parts.push('evidence=')
  if (mpe) parts.push('mpe=true')
  return parts.join('&')
}

// readAddress returns what a query says: evidence, null where it says none, and in wrong what the model does not have.
export function readAddress(query, graph, refer) {
  const said = query.split('&').filter(part => ours.test(part)).map(part => part.split('=').map(decoded))
  const seen = { evidence: null, mpe: said.some(([key, value]) => key === 'mpe' && value === 'true'), wrong: [] }
  const position = new Map()
  if (said.length) graph.variables.forEach((_, v) => position.set(attempt(() => refer.variable(v)), v))
  for (const [key, variable, value] of said) {
    if (key === 'mpe') continue
    seen.evidence ||= new Map()
    if (!variable) continue
    const v = position.get(variable)
    const one = v === undefined || value === undefined ? null : key === 'evidence' ? observed(graph, refer, v, value) : weighed(graph, v, value)
    if (one && !seen.evidence.has(v)) seen.evidence.set(v, one)
    else seen.wrong.push(variable + ' = ' + (value ?? ''))
  }
  return seen
}

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
  return attempt(() => decodeURIComponent(text)) ?? text
}

// attempt returns undefined where f fails: what has no name of its own.
function attempt(f) {
  try {
    return f()
  } catch {
    return undefined
  }
}
