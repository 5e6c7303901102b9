// An upstream service in Node.js: asks the pipeline about a model and prints the answer.
//
//   node infer.mjs [--nats URL] [--job ID] [--text FILE | --model NAME|NAME@V|DIGEST] [--evid FILE|ASSIGNMENTS]...
//       [--target V,V] [--joint V,V] [--mpe] [--map V,V] [--samples N [--seed N]] [--gradients]
//       [--do V=X] [--believe V=P/P] [--sensitivity V=X [--range R] [--top N]] [--ask V [--candidates V,V]] [--conflict]
//       [--method M [--accuracy NATS] [--flops N]] [--deadline MS] [--patience MS] [--json]
//
// --model is a registered model; of a digest the first six digits do where no other begins so. Without a model it asks about one of its
// own: rain, a sprinkler, and wet grass. It exits with 0 if the job was answered, 1 if it ended otherwise, 2 if it could not be asked.
// Ctrl-C cancels the job, and so does --patience.
import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { connect } from '@nats-io/transport-node'
import { assignment, pair, samples } from './model.mjs'
import { Pipeline } from './pipeline.mjs'
import { floats } from './wire.mjs'

const { values: flag } = parseArgs({
  options: {
    nats: { type: 'string', default: process.env.BTN_NATS ?? 'nats://127.0.0.1:4222' },
    job: { type: 'string', default: `node-${Date.now()}` },
    tenant: { type: 'string' },
    text: { type: 'string' },
    model: { type: 'string' },
    evid: { type: 'string', multiple: true, default: [] },
    target: { type: 'string' },
    joint: { type: 'string' },
    mpe: { type: 'boolean', default: false },
    map: { type: 'string' },
    samples: { type: 'string', default: '0' },
    seed: { type: 'string', default: '0' },
    gradients: { type: 'boolean', default: false },
    sensitivity: { type: 'string' },
    range: { type: 'string', default: '0' },
    top: { type: 'string', default: '0' },
    ask: { type: 'string' },
    candidates: { type: 'string' },
    conflict: { type: 'boolean', default: false },
    do: { type: 'string' },
    believe: { type: 'string' },
    method: { type: 'string' },
    accuracy: { type: 'string', default: '0' },
    flops: { type: 'string', default: '0' },
    deadline: { type: 'string', default: '0' },
    patience: { type: 'string', default: '60000' },
    json: { type: 'boolean', default: false },
  },
})

// A factor graph in the native form: tables are row-major, the last variable of the scope fastest.
function grass() {
  const dense = (scope, ...p) => ({ scope, table: { kind: 'dense', shape: scope.map(() => 2), data: floats(p) } })
  const [rain, sprinkler, wet] = [0, 1, 2]
  return {
    model: {
      domains: [2, 2, 2],
      names: ['rain', 'sprinkler', 'wet'],
      bayes: true,
      factors: [
        dense([rain], 0.8, 0.2),
        dense([rain, sprinkler], 0.6, 0.4, 0.99, 0.01),
        dense([sprinkler, rain, wet], 1, 0, 0.2, 0.8, 0.1, 0.9, 0.01, 0.99),
      ],
    },
    queries: [
      { marginals: true },
      { evidence: { h: [{ v: wet, x: 1 }] }, marginals: true, joint: [rain, sprinkler] },
      { evidence: { h: [{ v: rain, x: 1 }, { v: wet, x: 1 }] }, over: 2 }, // ln P(rain | wet): over query 1
      { evidence: { s: [{ v: wet, w: floats([0.3, 0.7]) }] }, marginals: true }, // a sensor that is right in 7 of 10 cases
    ],
  }
}

// What is asked without evidence, and of every evidence: a file, or assignments by name.
async function queries() {
  const names = (list) => list?.split(',')
  const named = { joint: names(flag.joint), targets: names(flag.target), map: names(flag.map) }
  if (flag.sensitivity) {
    const [, variable, value] = /^(.*?)=(.*)$/.exec(flag.sensitivity) ?? []
    if (variable === undefined) throw new Error('--sensitivity: VARIABLE=VALUE is needed')
    named.sensitivity = { ...pair({ [variable]: value }), range: Number(flag.range) || undefined, top: Number(flag.top) || undefined }
  }
  Object.assign(named, { do: flag.do, believe: flag.believe })
  if (flag.ask) named.information = { target: flag.ask, candidates: names(flag.candidates) }
  const ask = {
    marginals: true, mpe: flag.mpe, samples: Number(flag.samples), seed: Number(flag.seed), gradients: flag.gradients,
    conflict: flag.conflict,
    named: Object.values(named).some((x) => x) ? named : undefined,
  }
  const evid = await Promise.all(flag.evid.map((text) => (/[={]/.test(text) ? text : readFile(text, 'utf8'))))
  return [ask, ...evid.map((text, i) => ({ ...ask, evid: text, file: flag.evid[i] }))]
}

// What an estimate says of itself: what ln Z lies between, and of sampled components how many the weights are worth.
function trust({ bounds, uncertainty, estimates }) {
  const nats = (x) => x?.toFixed(6) ?? 'unknown'
  if (bounds) console.log(`  from ${nats(bounds.lower)} to ${nats(bounds.upper)}, at level ${bounds.level}`)
  if (uncertainty != null) console.log(`  uncertainty ${nats(uncertainty)}`)
  const last = estimates?.at(-1) // of them
  if (last?.standard_error != null) {
    console.log(`  standard error ${nats(last.standard_error)}, ${last.components} components worth ${nats(last.effective_samples)} of one weight`)
  }
}

function print(answer) {
  const called = ({ name, variable }) => name ?? `x_${variable}`
  const list = (of) => Object.entries(assignment(of)).map(([v, x]) => `${of.names ? '' : 'x_'}${v}=${x}`).join(' ')
  for (const r of answer.results ?? []) {
    if (flag.json) {
      console.log(JSON.stringify(r))
      continue
    }
    const z = r.error ? `${r.error.code}: ${r.error.message}` : r.zero ? 'impossible' : `ln Z = ${r.log_z.toFixed(10)}${r.exact ? '' : ' (an estimate)'}`
    console.log(`query ${r.query}: ${z}${r.ratio?.p == null ? '' : `, P = ${r.ratio.p.toFixed(10)}`}`)
    if (!r.exact) trust(r)
    for (const m of r.marginals ?? []) {
      console.log(`  ${called(m)}  ${m.p.map((p, x) => `${m.states ? `${m.states[x]} ` : ''}${p.toFixed(6)}`).join(' ')}`)
    }
    for (const best of [r.mpe, r.map]) if (best) console.log(`  likeliest  ${list(best)}`)
    for (const values of r.samples ? samples(r) : []) {
      console.log(`  sample  ${Object.entries(values).map(([v, x]) => `${r.samples.names ? '' : 'x_'}${v}=${x}`).join(' ')}`)
    }
    if (r.conflict) {
      const observed = r.conflict.observations.map((o) => called(o) + (o.value === null ? '' : `=${o.state ?? o.value}`))
      console.log(`  contradict each other  ${observed.join(' ')}`)
    }
    const { information, sensitivity } = r
    for (const c of information?.candidates ?? []) {
      console.log(`  ${called(c)} tells ${c.mutual_information.toFixed(6)} nats about ${called({ name: information.name, variable: information.target })}`)
    }
    for (const n of sensitivity?.tornado ?? []) {
      const target = `P(${called(sensitivity)}=${sensitivity.state ?? sensitivity.value})`
      const place = n.values ? list({ ...n, assignment: n.values }) : `${n.number} of factor ${n.factor}`
      console.log(`  ${target} from ${n.low.toFixed(6)} to ${n.high.toFixed(6)} by ${n.theta.toFixed(6)} at ${place}`)
    }
  }
  if (answer.error) console.error(`job ${answer.job}: ${answer.status}: ${answer.error.code}: ${answer.error.message} (${answer.error.stage})`)
}

async function main() {
  const text = flag.text && await readFile(flag.text, 'utf8')
  const nc = await connect({ servers: flag.nats, name: 'client-node', maxReconnectAttempts: -1 }).catch((error) => {
    throw new Error(`connect to ${flag.nats}: ${error.message}`)
  })
  try {
    const pipeline = await Pipeline.over(nc)
    pipeline.watch(flag.job, (p) => console.error(`${p.stage} ${p.done}/${p.total || '?'} ${p.text ?? ''}`))
    const impatience = new AbortController()
    let submitted = false
    process.once('SIGINT', () => impatience.abort())
    const timer = setTimeout(() => impatience.abort(), Number(flag.patience))
    let answer
    try {
      const settings = { method: flag.method, accuracy: Number(flag.accuracy) || undefined, budget: Number(flag.flops) || undefined }
      const common = { tenant: flag.tenant, deadline_ms: Number(flag.deadline) || undefined, settings }
      const owner = flag.job.includes('.') ? flag.job.split('.')[0] : undefined
      const source = text ? { text } : flag.model && { model_digest: await pipeline.find(flag.model, owner) }
      const asked = source
        ? { ...source, queries: await queries() }
        : grass()
      await pipeline.submit({ job: flag.job, ...common, ...asked })
      submitted = true
      answer = await pipeline.wait(flag.job, impatience.signal)
    } catch (error) {
      if (!impatience.signal.aborted || !submitted) throw error
      await pipeline.cancel(flag.job, 'nobody waits for it any more')
      answer = await pipeline.wait(flag.job, AbortSignal.timeout(10_000)) // cancelled, or the answer that came first
    } finally {
      clearTimeout(timer)
    }
    print(answer)
    return answer.status === 'ok' ? 0 : 1
  } finally {
    await nc.close()
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(error.message)
  process.exitCode = 2
}
