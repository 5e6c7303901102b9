// Questions on one model, asked and answered by name.
import { randomUUID } from 'node:crypto'
import { floats } from './wire.mjs'

/** The service says that something cannot be answered; code says why (docs/reference/wire.md). */
export class Fault extends Error {
  constructor({ code, message, stage }, job) {
    super(`${code}: ${message}`)
    Object.assign(this, { code, stage, job })
  }
}

/** The results of an answer, each with `named`: what it says of variables, by their names. */
export function results(answer) {
  const { names = [], states = [] } = answer
  const variable = (v) => names?.[v] || String(v)
  const value = (v, x) => states?.[v]?.[x] || String(x)
  const assignment = (a, of) => a && Object.fromEntries(a.map((x, i) => [variable(of?.[i] ?? i), value(of?.[i] ?? i, x)]))
  const posterior = (v, p) => [variable(v), Object.fromEntries(p.map((y, x) => [value(v, x), y]))]
  return (answer.results ?? []).map((r) => ({
    ...r,
    named: {
      posteriors: r.marginals && Object.fromEntries(r.marginals.map((p, i) => posterior(r.targets?.[i] ?? i, p))),
      joint: r.joint && {
        variables: r.joint.variables.map(variable),
        states: r.joint.variables.map((v, k) => Array.from({ length: r.joint.shape[k] }, (_, x) => value(v, x))),
      },
      mpe: assignment(r.mpe?.assignment),
      map: assignment(r.map?.assignment, r.map?.variables),
      samples: r.samples?.map((a) => assignment(a)),
      conflict: r.conflict && Object.fromEntries(r.conflict.observations.map((o) => [variable(o.variable), o.value === null ? null : value(o.variable, o.value)])),
      information: r.information && {
        target: variable(r.information.target), candidates: r.information.candidates.map((c) => variable(c.variable)),
      },
      sensitivity: r.sensitivity && {
        variable: variable(r.sensitivity.variable), value: value(r.sensitivity.variable, r.sensitivity.value),
        // Where the numbers stand: in the table over the variables of at; of is the variable whose probabilities they are.
        tornado: r.sensitivity.tornado.map((n) => ({
          of: n.of === undefined ? undefined : variable(n.of), at: assignment(n.values, n.variables),
        })),
      },
    },
  }))
}

// The position of what is called so in a list of names, or is at this position of it in digits: a name wins.
function position(list, name, what) {
  const text = String(name)
  const i = text === '' || !list ? -1 : list.indexOf(text)
  if (i >= 0) return i
  const misleading = list?.some((n, i) => /^\d+$/.test(n) && n !== String(i)) // names that are other positions
  if (/^\d+$/.test(text) && !(misleading && list[text])) return Number(text)
  const known = list?.length ? `: there are ${list.slice(0, 20).join(', ')}${list.length > 20 ? ', …' : ''}` : ''
  throw new Fault({ code: 'bad_input', message: `no ${what} ${JSON.stringify(text)}${known}` })
}

/** Evidence {smoke: 'yes', xray: [0.2, 0.8], bronc: {yes: 0.3, no: 1}} as a query has it. */
const given = (evidence) => (Object.keys(evidence).length ? { evid: JSON.stringify(evidence) } : {})

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
    return results(await this.#answer(queries))
  }

  async #answer(queries) {
    const job = `${this.owner ? `${this.owner}.` : ''}node-${randomUUID()}`
    await this.pipeline.submit({ ...this.request, job, ...this.source, queries })
    try {
      const answer = await this.pipeline.wait(job, this.signal)
      if (answer.error) throw new Fault(answer.error, job)
      return answer
    } catch (error) {
      if (this.signal?.aborted) await this.pipeline.cancel(job, 'nobody waits for it any more')
      throw error
    }
  }

  /** {names, states} of the model. A model that is not at hand is asked for a marginal under the evidence, whose answer has them. */
  async labels(evidence = {}) {
    if (this.source.model) return this.source.model
    if (!this.known) {
      const answer = await this.#answer([{ ...given(evidence), targets: [0] }])
      const [r] = answer.results
      if (r.error) throw new Fault(r.error, answer.job)
      if (r.zero) throw new Fault(impossible, answer.job)
      this.known = { names: answer.names, states: answer.states }
    }
    return this.known
  }

  async #one(evidence, query) {
    const [r] = await this.ask({ ...given(evidence), ...query })
    if (r.error) throw new Fault(r.error, r.job)
    if (r.zero) throw new Fault(impossible, r.job)
    return r
  }

  /** {variable: {state: p}} of the targets, or of all variables. */
  async marginals(evidence = {}, targets) {
    const r = await this.#one(evidence, { marginals: true, named: targets && { targets } })
    return r.named.posteriors
  }

  /** {variables, states, p}: the last variable fastest. */
  async joint(variables, evidence = {}) {
    const r = await this.#one(evidence, { named: { joint: variables } })
    return { ...r.named.joint, p: r.joint.p }
  }

  /** P(event | evidence). */
  async probability(event, evidence = {}) {
    for (const v of Object.keys(event)) if (v in evidence) throw new Error(`${v} is both in the event and in the evidence`)
    const [r, both] = await this.ask(given(evidence), { ...given({ ...evidence, ...event }), over: 1 })
    for (const x of [r, both]) if (x.error) throw new Fault(x.error, x.job)
    if (r.zero) throw new Fault(impossible, r.job)
    return both.zero ? 0 : Math.exp(both.ln_ratio)
  }

  /** {assignment: {variable: state}, ln_weight, unique}: the likeliest states of all variables. */
  async mpe(evidence = {}) {
    const r = await this.#one(evidence, { mpe: true })
    return { ...r.mpe, assignment: r.named.mpe }
  }

  /** {assignment, ln_weight, exact, ln_bound}: the likeliest states of some variables, the others summed out. */
  async map(variables, evidence = {}) {
    const r = await this.#one(evidence, { named: { map: variables } })
    return { ...r.map, assignment: r.named.map }
  }

  /** n independent samples {variable: state}: the same ones for the same seed. */
  async sample(n, evidence = {}, seed = 0) {
    const r = await this.#one(evidence, { samples: n, seed })
    return r.named.samples
  }

  /** ∂ ln Z/∂θ: a list per factor. */
  async gradients(evidence = {}) {
    const r = await this.#one(evidence, { gradients: true })
    return r.gradients
  }

  /** The field of a query that asks how P(target), {lung: 'yes'}, depends on the numbers of the model. */
  async sensitivityOf(target, { range, top } = {}, evidence = {}) {
    const pairs = Object.entries(target)
    if (pairs.length !== 1) throw new Fault({ code: 'bad_input', message: 'sensitivity: one value of one variable is needed' })
    const { names, states } = await this.labels(evidence)
    const v = position(names, pairs[0][0], 'variable')
    return { v, x: position(states?.[v], pairs[0][1], `value of ${pairs[0][0]}`), range, top }
  }

  /**
   * How P(target | evidence) depends on the numbers of the model: {variable, value, p, range, derivatives, covaried, tornado}, the tornado
   * with those that move it farthest, {of, at, factor, number, theta, from, to, low, high} each.
   */
  async sensitivity(target, evidence = {}, options = {}) {
    const r = await this.#one(evidence, { sensitivity: await this.sensitivityOf(target, options, evidence) })
    const { variable, value, tornado } = r.named.sensitivity
    return { ...r.sensitivity, variable, value, tornado: r.sensitivity.tornado.map((n, i) => ({ ...n, ...tornado[i] })) }
  }

  /**
   * The field of a query that asks what observing candidates, or all that is not observed, would tell about the target. utility has what
   * actions are worth by its value: {treat: {no: -5, yes: 10}, wait: [0, -20]}; what is not named is worth 0.
   */
  async informationOf(target, { candidates, utility } = {}, evidence = {}) {
    const { names, states, domains } = await this.labels(evidence)
    const v = position(names, target, 'variable')
    const worth = (of) => {
      if (Array.isArray(of)) return floats(of)
      const size = domains?.[v] ?? states?.[v]?.length
      if (!size) throw new Fault({ code: 'bad_input', message: `utility: the values of ${target} have no names, a list is needed` })
      const row = Array(size).fill(0)
      for (const [state, u] of Object.entries(of)) row[position(states?.[v], state, `value of ${target}`)] = u
      return floats(row)
    }
    return {
      target: v, candidates: candidates?.map((c) => position(names, c, 'variable')), utility: utility && Object.values(utility).map(worth),
    }
  }

  /**
   * What to ask next: {target, entropy, exact, candidates: [{variable, mutual_information, expected_entropy}]}, the most telling first; with
   * a utility also the best action now and its expected_utility, and of every candidate the utility_gain.
   */
  async information(target, evidence = {}, options = {}) {
    const r = await this.#one(evidence, { information: await this.informationOf(target, options, evidence) })
    const { target: of, candidates } = r.named.information
    return {
      ...r.information, target: of, candidates: r.information.candidates.map((c, i) => ({ ...c, variable: candidates[i] })),
      ...(r.information.action === undefined ? {} : { action: Object.keys(options.utility)[r.information.action] }),
    }
  }

  /** {observations: {variable: state, or null for weights}, smallest} of impossible evidence that contradict each other; null if it is possible. */
  async conflict(evidence) {
    const [r] = await this.ask({ ...given(evidence), conflict: true })
    if (r.error) throw new Fault(r.error, r.job)
    if (!r.zero) return null
    if (!r.conflict) throw new Fault({ ...impossible, message: `${impossible.message}, and what contradicts each other was not found out` }, r.job)
    return { observations: r.named.conflict, smallest: r.conflict.smallest }
  }
}
