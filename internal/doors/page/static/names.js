// What the variables of a model and their values are called, on the page and in requests.

// labelled names variables and values that an answer speaks of: as the answer does, and x_i or the position without names.
export const labelled = {
  variable: (name, v) => name ?? 'x_' + v,
  value: (state, x) => state ?? String(x),
}

// named tells what is shown: names, and x_i or the position without one; shown and full have display names, too.
export function named(graph) {
  const name = v => graph.variables[v]?.name || 'x_' + v
  const shown = v => graph.variables[v]?.display || name(v)
  return {
    name,
    shown, // as the program of its file shows it
    full: v => shown(v) === name(v) ? name(v) : `${shown(v)} (${name(v)})`,
    state: (v, x) => graph.variables[v]?.states?.[x] || String(x),
  }
}

// references tells what requests say: a name, or without one the position, unless that is the name of another.
export function references(graph) {
  const variables = refer(graph.variables.map(v => v.name || ''), 'variable')
  const states = new Map()
  return {
    variable: variables,
    state(v, x) {
      if (!states.has(v)) states.set(v, refer(graph.variables[v].states || [], 'value'))
      return states.get(v)(x)
    },
  }
}

function refer(names, thing) {
  const taken = new Set(names)
  return i => {
    if (names[i]) return names[i]
    if (taken.has(String(i))) throw new Error(`${thing} ${i} has no name, and ${i} is the name of another ${thing}: it cannot be asked for`)
    return String(i)
  }
}

// evidenceOf writes evidence, a map of variable to {value} or {weights}, as requests have it.
export function evidenceOf(evidence, refer) {
  const entries = [...evidence].sort((a, b) => a[0] - b[0]).map(([v, seen]) => [refer.variable(v), seen.weights || refer.state(v, seen.value)])
  return Object.fromEntries(entries)
}
