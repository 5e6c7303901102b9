// Questions on one model, asked and answered by name.
import { randomUUID } from 'node:crypto'

/** The service says that something cannot be answered; code says why (docs/reference/wire.md). */
export class Fault extends Error {
  constructor({ code, message, stage }, job) {
    super(`${code}: ${message}`)
    Object.assign(this, { code, stage, job })
  }
}

/** {variable: state} of an assignment: by names, and by positions without. */
export const assignment = ({ assignment, variables, names, states }) =>
  Object.fromEntries(assignment.map((x, i) => [names?.[i] ?? String(variables?.[i] ?? i), states?.[i] ?? String(x)]))

const label = ({ name, variable }) => name ?? String(variable)

/** {variable: {state: p}} of a result's marginals. */
export const posteriors = (r) => r.marginals && Object.fromEntries(r.marginals.map((m) =>
  [label(m), Object.fromEntries(m.p.map((p, x) => [m.states?.[x] ?? String(x), p]))]))

/** [{variable: state}] of a result's samples. */
export const samples = ({ samples: { assignments, names, states } }) => assignments.map((values) =>
  assignment({ assignment: values, names, states: values.map((x, v) => states?.[v]?.[x] ?? String(x)) }))

/** {variable: state, or null for weights} of observations that contradict each other. */
export const contradiction = ({ observations }) => Object.fromEntries(observations.map((o) =>
  [label(o), o.value === null ? null : o.state ?? String(o.value)]))

/** Evidence {smoke: 'yes', xray: [0.2, 0.8], bronc: {yes: 0.3, no: 1}} as a query has it. */
const given = (evidence) => (Object.keys(evidence).length ? { evid: JSON.stringify(evidence) } : {})

/** {variable, value} of {lung: 'yes'}. */
export function pair(target) {
  const pairs = Object.entries(target)
  if (pairs.length !== 1) throw new Fault({ code: 'bad_input', message: 'sensitivity: one value of one variable is needed' })
  const [[variable, value]] = pairs
  return { variable, value: String(value) }
}

const impossible = { code: 'impossible', message: 'the evidence has probability 0' }

export class Model {
  /**
   * source is one of {model_digest}, {text}, {model}, as fields of a model message. Jobs are the owner's where there is one; an aborted
   * signal cancels what is waited for.
   */
  constructor(pipeline, source, { owner, signal, ...request } = {}) {
    Object.assign(this, { pipeline, source, owner, signal, request })
  }

  /** The results of queries, in one job, whose error is thrown. */
  async ask(...queries) {
    const job = `${this.owner ? `${this.owner}.` : ''}node-${randomUUID()}`
    await this.pipeline.submit({ ...this.request, job, ...this.source, queries })
    try {
      const answer = await this.pipeline.wait(job, this.signal)
      if (answer.error) throw new Fault(answer.error, job)
      return answer.results
    } catch (error) {
      if (this.signal?.aborted) await this.pipeline.cancel(job, 'nobody waits for it any more')
      throw error
    }
  }

  async #one(evidence, query) {
    const [r] = await this.ask({ ...given(evidence), ...query })
    if (r.error) throw new Fault(r.error, r.job)
    if (r.zero) throw new Fault(impossible, r.job)
    return r
  }

  /** {variable: {state: p}} of the targets, or of all variables. */
  async marginals(evidence = {}, targets) {
    return posteriors(await this.#one(evidence, { marginals: true, named: targets && { targets } }))
  }

  /** {variables, states, p}: the last variable fastest. */
  async joint(variables, evidence = {}) {
    const { joint } = await this.#one(evidence, { named: { joint: variables } })
    return {
      variables: joint.names ?? joint.variables.map(String),
      states: joint.states ?? joint.shape.map((n) => Array.from({ length: n }, (_, x) => String(x))),
      p: joint.p,
    }
  }

  /** P(event | evidence). */
  async probability(event, evidence = {}) {
    for (const v of Object.keys(event)) if (v in evidence) throw new Error(`${v} is both in the event and in the evidence`)
    const [r, both] = await this.ask(given(evidence), { ...given({ ...evidence, ...event }), over: 1 })
    for (const x of [r, both]) if (x.error) throw new Fault(x.error, x.job)
    if (r.zero) throw new Fault(impossible, r.job)
    return both.ratio.p
  }

  /** {assignment: {variable: state}, ln_weight, unique}: the likeliest states of all variables. */
  async mpe(evidence = {}) {
    const { mpe } = await this.#one(evidence, { mpe: true })
    return { ...mpe, assignment: assignment(mpe) }
  }

  /** {assignment, ln_weight, exact, ln_bound}: the likeliest states of some variables, the others summed out. */
  async map(variables, evidence = {}) {
    const { map } = await this.#one(evidence, { named: { map: variables } })
    return { ...map, assignment: assignment(map) }
  }

  /** n independent samples {variable: state}: the same ones for the same seed. */
  async sample(n, evidence = {}, seed = 0) {
    return samples(await this.#one(evidence, { samples: n, seed }))
  }

  /** ∂ ln Z/∂θ: a list per factor. */
  async gradients(evidence = {}) {
    const r = await this.#one(evidence, { gradients: true })
    return r.gradients.by
  }

  /**
   * How P(target | evidence), of {lung: 'yes'}, depends on the numbers of the model: {variable, value, p, range, derivatives, covaried,
   * tornado}, the tornado with those that move it farthest, {of, at, factor, number, theta, from, to, low, high} each: they stand in the
   * table over the variables of at, and of is the variable whose probabilities they are.
   */
  async sensitivity(target, evidence = {}, { range, top } = {}) {
    const { sensitivity: s } = await this.#one(evidence, { named: { sensitivity: { ...pair(target), range, top } } })
    return {
      ...s, variable: label(s), value: s.state ?? String(s.value), derivatives: s.derivatives.by,
      tornado: s.tornado.map((n) => ({
        ...n,
        of: n.of === undefined ? undefined : n.names?.[n.variables.indexOf(n.of)] ?? String(n.of),
        at: n.values && assignment({ ...n, assignment: n.values }),
      })),
    }
  }

  /**
   * What to ask next, of candidates or of all that is not observed: {target, entropy, exact, candidates: [{variable, mutual_information,
   * expected_entropy}]}, the most telling first. With utility, what actions are worth by the target's value ({treat: {no: -5, yes: 10},
   * wait: [0, -20]}; what is not named is worth 0), also the best action now and its expected_utility, and of every candidate the
   * utility_gain.
   */
  async information(target, evidence = {}, { candidates, utility } = {}) {
    const ask = { target: String(target), candidates: candidates?.map(String), utility: utility && JSON.stringify(utility) }
    const { information: i } = await this.#one(evidence, { named: { information: ask } })
    return {
      ...i, target: i.name ?? String(i.target), candidates: i.candidates.map((c) => ({ ...c, variable: label(c) })),
      ...(i.action === undefined ? {} : { action: Object.keys(utility).sort()[i.action] }),
    }
  }

  /** {observations: {variable: state, or null for weights}, smallest} of impossible evidence that contradict each other; null if it is possible. */
  async conflict(evidence) {
    const [r] = await this.ask({ ...given(evidence), conflict: true })
    if (r.error) throw new Fault(r.error, r.job)
    if (!r.zero) return null
    if (!r.conflict) throw new Fault({ ...impossible, message: `${impossible.message}, and what contradicts each other was not found out` }, r.job)
    return { observations: contradiction(r.conflict), smallest: r.conflict.smallest }
  }
}
