// An upstream service in Node.js: asks the pipeline about a model and prints the answer.
//
//   node infer.mjs [--nats URL] [--job ID] [--uai FILE [--evid FILE]...] [--deadline MS] [--patience MS] [--json]
//
// Without --uai it asks about a model of its own: rain, a sprinkler, and wet grass. It exits with 0 if the job was
// answered, 1 if it ended otherwise, 2 if it could not be asked. Ctrl-C cancels the job, and so does --patience.
import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { connect } from '@nats-io/transport-node'
import { Pipeline } from './pipeline.mjs'
import { floats } from './wire.mjs'

const { values: flag } = parseArgs({
  options: {
    nats: { type: 'string', default: process.env.BTN_NATS ?? 'nats://127.0.0.1:4222' },
    job: { type: 'string', default: `node-${Date.now()}` },
    tenant: { type: 'string' },
    uai: { type: 'string' },
    evid: { type: 'string', multiple: true, default: [] },
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

// A model and its evidence as the text of UAI files.
async function text() {
  const evid = await Promise.all(flag.evid.map((path) => readFile(path, 'utf8')))
  return {
    uai: await readFile(flag.uai, 'utf8'),
    queries: [{ marginals: true }, ...evid.map((text, i) => ({ evid: text, file: flag.evid[i], marginals: true }))],
  }
}

function print(answer) {
  for (const r of answer.results ?? []) {
    if (flag.json) {
      console.log(JSON.stringify(r))
      continue
    }
    const z = r.error ? `${r.error.code}: ${r.error.message}` : r.zero ? 'impossible' : `ln Z = ${r.log_z.toFixed(10)}${r.exact ? '' : ' (an estimate)'}`
    console.log(`query ${r.query}: ${z}${r.ln_ratio === null ? '' : `, P = ${Math.exp(r.ln_ratio).toFixed(10)}`}`)
    r.marginals?.forEach((p, i) => console.log(`  x_${i}  ${p.map((x) => x.toFixed(6)).join(' ')}`))
  }
  if (answer.error) console.error(`job ${answer.job}: ${answer.status}: ${answer.error.code}: ${answer.error.message} (${answer.error.stage})`)
}

async function main() {
  const request = {
    job: flag.job, tenant: flag.tenant, ...(flag.uai ? await text() : grass()), deadline_ms: Number(flag.deadline) || undefined,
  }
  const nc = await connect({ servers: flag.nats, name: 'client-node', maxReconnectAttempts: -1 }).catch((error) => {
    throw new Error(`connect to ${flag.nats}: ${error.message}`)
  })
  try {
    const pipeline = await Pipeline.over(nc)
    pipeline.watch(flag.job, (p) => console.error(`${p.stage} ${p.done}/${p.total || '?'} ${p.text ?? ''}`))
    const impatience = new AbortController()
    process.once('SIGINT', () => impatience.abort())
    await pipeline.submit(request)

    const timer = setTimeout(() => impatience.abort(), Number(flag.patience))
    let answer
    try {
      answer = await pipeline.wait(flag.job, impatience.signal)
    } catch (error) {
      if (!impatience.signal.aborted) throw error
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
