// Questions on one model, asked and answered by name.
import { randomUUID } from 'node:crypto'

/** The service says that something cannot be answered; code says why (docs/wire.md). */
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
    },
  }))
}

/** Evidence {smoke: 'yes', xray: [0.2, 0.8], bronc: {yes: 0.3, no: 1}} as a query has it. */
const given = (evidence) => (Object.keys(evidence).length ? { evid: JSON.stringify(evidence) } : {})

export class Model {
  /** source is one of {model_digest}, {uai}, {model}, as fields of a model message. */
  constructor(pipeline, source, request = {}) {
    Object.assign(this, { pipeline, source, request })
  }

  /** The results of queries, in one job, whose error is thrown. */
  async ask(...queries) {
    const job = `node-${randomUUID()}`
    await this.pipeline.submit({ ...this.request, job, ...this.source, queries })
    const answer = await this.pipeline.wait(job)
    if (answer.error) throw new Fault(answer.error, job)
    return results(answer)
  }

  async #one(evidence, query) {
    const [r] = await this.ask({ ...given(evidence), ...query })
    if (r.error) throw new Fault(r.error, r.job)
    if (r.zero) throw new Fault({ code: 'impossible', message: 'the evidence has probability 0' }, r.job)
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
    if (r.zero) throw new Fault({ code: 'impossible', message: 'the evidence has probability 0' }, r.job)
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
}
