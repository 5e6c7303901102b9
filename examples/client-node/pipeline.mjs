// A client of the pipeline: submit, wait, watch, cancel. It knows subjects, streams and headers; see docs/reference/wire.md.
import { setTimeout as delay } from 'node:timers/promises'
import { jetstream } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { Model } from './model.mjs'
import { digest, fromBytes, lane, sha256, toBytes } from './wire.mjs'

const wrongLastSequence = [10071, 10164] // the server's codes for: the subject has a message already
const envelope = 4096 // bytes of a message that are left for subject, headers and the server's own additions
const look = 2000 // ms between looks for a stored answer: one that was published may be lost with a connection

/** The job's id belongs to another request. */
export class JobTaken extends Error {}

/** No registered model is called so. */
export class NotFound extends Error {}

export class Pipeline {
  /** Connects; close() ends that. */
  static async connect(url) {
    return Pipeline.over(await connect({ servers: url, name: 'client-node', maxReconnectAttempts: -1 }))
  }

  close() {
    return this.nc.close()
  }

  /**
   * The digest of a registered model: of alarm (its last version), alarm@3, a digest, or the first six digits or more of one that no
   * other begins with. An owner, the tenant of jobs <tenant>.<id>, has names and models of its own, which come first.
   */
  async find(ref, owner) {
    const text = ref.replace('digest:', '')
    if (/^[0-9a-f]{64}$/.test(text)) return text
    const [, name, number] = /^([^@]*)(?:@(.*))?$/s.exec(text)
    for (const shelf of /^[\w-]{1,64}$/.test(name) ? shelves(owner) : []) {
      const stored = await this.#stored('BTN_GRAPH', shelf + name)
      const versions = stored ? JSON.parse(Buffer.from(stored).toString()).versions : []
      if (versions.length === 0) continue
      const at = number === undefined ? versions.length : /^\d+$/.test(number) ? Number(number) : 0
      if (at < 1 || at > versions.length) throw new NotFound(`${name} has the versions 1 to ${versions.length}, and no ${JSON.stringify(number)}`)
      return versions[at - 1].digest
    }
    if (number !== undefined || !/^[0-9a-f]{6,63}$/.test(text)) throw new NotFound(`no registered model is called ${JSON.stringify(name)}`)
    const info = await this.jsm.streams.info('BTN_GRAPH', { subjects_filter: 'btn.v1.graph.>' })
    const subjects = Object.keys(info.state.subjects ?? {})
    const digests = subjects.flatMap((s) => shelves(owner).filter((shelf) => s.startsWith(shelf)).map((shelf) => s.slice(shelf.length)))
    const found = [...new Set(digests)].filter((d) => /^[0-9a-f]{64}$/.test(d) && d.startsWith(text))
    if (found.length === 0) throw new NotFound(`no registered model is called ${text}, and no digest begins so`)
    if (found.length > 1) throw new Error(`the digests of ${found.length} registered models begin with ${text}: give more digits`)
    return found[0]
  }

  /** The registered model of this digest, to ask questions of. */
  model(digest) {
    return new Model(this, { model_digest: digest.replace('digest:', '') })
  }

  static async over(nc) {
    const js = jetstream(nc)
    return new Pipeline(nc, js, await js.jetstreamManager())
  }

  constructor(nc, js, jsm) {
    Object.assign(this, { nc, js, jsm })
  }

  /**
   * Stores a request, the fields of a model message, and returns its digest. Submitting the same request again is no
   * new job, so whoever is not sure that it arrived submits it again.
   */
  async submit(request) {
    const mine = digest(request)
    const subject = `btn.v1.model.${lane(request.tenant)}.${request.job}`
    const message = await this.#fit(subject, toBytes('model', request), header('model', request, mine))
    const taken = `btn.v1.model.*.${request.job}` // in whatever lane
    try {
      await this.js.publish(subject, message.data, {
        headers: message.headers,
        expect: { lastSubjectSequence: 0, lastSubjectSequenceSubject: taken },
      })
      return mine
    } catch (error) {
      if (!wrongLastSequence.includes(error.code)) throw error
    }
    const stored = await this.#stored('BTN_MODEL', taken)
    if (stored === null) return this.submit(request) // what was in the way has expired meanwhile
    // Both digests are computed here: the header of the stored message is what its publisher said.
    if (digest(fromBytes('model', stored)) !== mine) throw new JobTaken(`job ${request.job} is taken by another request`)
    return mine
  }

  /** The job's answer, or null while there is none. */
  async answer(job) {
    const bytes = await this.#stored('BTN_ANSWER', `btn.v1.answer.${job}`)
    return bytes && fromBytes('answer', bytes)
  }

  /** The job's answer as soon as there is one. An aborted signal ends the wait, not the job. */
  async wait(job, signal) {
    let arrived
    const done = new Promise((resolve) => { arrived = resolve })
    const sub = this.nc.subscribe(`btn.v1.done.${job}`, { max: 1, callback: (error, m) => { if (!error) arrived(m) } })
    try {
      await this.nc.flush() // the server knows of the subscription before the first look, so no answer falls between the two
      for (;;) {
        const stored = await this.answer(job)
        if (stored) return stored
        const m = await Promise.race([done, delay(look, null, { signal, ref: false })])
        if (m && intact(`btn.v1.answer.${job}`, m)) return fromBytes('answer', await this.#payload(m))
        if (m) await delay(look, null, { signal }) // it was damaged on its way: the stored one follows
      }
    } finally {
      sub.unsubscribe()
    }
  }

  /** Calls f with the job's progress until the function it returns is called. Some may be lost. */
  watch(job, f) {
    const sub = this.nc.subscribe(`btn.v1.progress.${job}`, { callback: (error, m) => { if (!error) f(fromBytes('progress', m.data)) } })
    return () => sub.unsubscribe()
  }

  /** Asks that a job end without a result. One that has its answer keeps it: the answer says which it was. */
  async cancel(job, reason) {
    const fields = { job, reason, time: Date.now() }
    const subject = `btn.v1.cancel.${job}`
    const message = summed(subject, { data: toBytes('cancel', fields), headers: header('cancel', fields) })
    await this.js.publish(subject, message.data, { headers: message.headers })
  }

  // The payload of the last message on a subject, or null.
  async #stored(stream, subject) {
    for (let looks = 0; ; looks++) {
      const m = await this.jsm.direct.getMessage(stream, { last_by_subj: subject })
      const message = m && { data: m.data, headers: m.header }
      if (!m || intact(m.subject, message)) return m && this.#payload(message)
      if (looks > 0) throw new Error(`the message on ${m.subject} is damaged`)
    }
  }

  // What a message carries: its data, or the blob that its header names.
  async #payload(m) {
    const name = m.headers?.get('Btn-Blob')
    if (!name) return m.data
    const blob = await this.jsm.direct.getMessage('BTN_BLOB', { last_by_subj: `btn.v1.blob._.${name}` })
    if (!blob) throw new Error(`blob ${name} is gone`)
    let bytes = blob.data
    if (blob.header.get('Btn-Pieces')) {
      const digests = Buffer.from(bytes).toString().match(/.{64}/g)
      const pieces = await Promise.all(digests.map((d) => this.jsm.direct.getMessage('BTN_BLOB', { last_by_subj: `btn.v1.blob._.${d}` })))
      bytes = Buffer.concat(pieces.map((piece) => piece?.data ?? Buffer.alloc(0))) // of a piece that is gone the digest tells below
    }
    if (!bytes || sha256(bytes) !== name) throw new Error(`blob ${name} is not what its name says`)

    return bytes
  }

  // The payload with its headers or, if the server would not take as much, the name of a blob that has it.
  async #fit(subject, data, headers) {
    const most = this.nc.info.max_payload - envelope
    if (data.length <= most) return summed(subject, { data, headers })
    const name = sha256(data)
    const pieces = []
    for (let at = 0; at < data.length; at += most) {
      const piece = data.subarray(at, at + most)
      pieces.push(sha256(piece))
      await this.js.publish(`btn.v1.blob._.${pieces.at(-1)}`, piece)
    }
    await this.js.publish(`btn.v1.blob._.${name}`, pieces.join(''), { headers: set({ 'Btn-Pieces': String(pieces.length) }) })
    headers.set('Btn-Blob', name)
    return summed(subject, { data: name, headers })
  }
}

// Where an owner's registered models and their names are: its own, then everybody's.
const shelves = (owner) => [...(owner ? [`btn.v1.graph.${owner}.`] : []), 'btn.v1.graph._.']

function header(name, { job, tenant }, digest) {
  return set({
    'content-type': 'application/msgpack', 'Btn-Schema': name, 'Btn-Schema-Version': '1', 'Btn-Job': job, 'Btn-Tenant': tenant, 'Btn-Digest': digest,
  })
}

function set(values) {
  const h = headers()
  for (const [name, value] of Object.entries(values)) if (value) h.set(name, value)
  return h
}

// The sum of a message: of its subject, the headers that readers act on, and its data.
function sumOf(subject, { data, headers }) {
  const lines = [subject, ...['Btn-Blob', 'Btn-Digest', 'Btn-Status'].map((name) => headers?.get(name) ?? '')]
  return sha256(Buffer.concat([Buffer.from(lines.map((line) => line + '\n').join('')), Buffer.from(data)]))
}

function summed(subject, message) {
  message.headers.set('Btn-Sum', sumOf(subject, message))
  return message
}

// Whether a message is as it was sent, as far as it says.
function intact(subject, message) {
  const said = message.headers?.get('Btn-Sum')
  return !said || said === sumOf(subject, message)
}
