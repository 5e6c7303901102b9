// How probable is lung cancer in a smoker whose X-ray is abnormal? BTN_NATS is the URL of NATS.
import { readFileSync } from 'node:fs'
import { decode, encode } from '@msgpack/msgpack'
import { connect } from '@nats-io/transport-node'

const request = {
  t: 'model', v: 1, // the message's name and version
  text: readFileSync('examples/asia.json', 'utf8'),
  queries: [{ evid: 'smoke=yes,xray=abnormal', named: { targets: ['lung'] } }],
  deadline_ms: 30_000, // the service ends the job after that
}
const nc = await connect({ servers: process.env.BTN_NATS ?? 'nats://127.0.0.1:4222' })
try {
  const reply = await nc.request('btn.v1.infer', encode(request), { timeout: 40_000 })
  const answer = decode(reply.data)
  const error = answer.error ?? answer.results[0].error // of the job, or of this one query
  if (error) throw new Error(`${error.code}: ${error.message}`)
  for (const { name, states, p } of answer.results[0].marginals) console.log(`P(${name} = yes) =`, p[states.indexOf('yes')])
} finally {
  await nc.close()
}
