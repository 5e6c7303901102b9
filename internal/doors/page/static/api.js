// The gateway's HTTP API.

const slot = 'basetensor key'
let key = sessionStorage.getItem(slot) || ''

export function hasKey() { return key !== '' }

export function useKey(text) {
  key = text.trim()
  if (key) sessionStorage.setItem(slot, key)
  else sessionStorage.removeItem(slot)
}

// Failed is a response without what was asked for.
export class Failed extends Error {
  constructor(status, error, body) {
    super(error.message)
    this.status = status
    this.code = error.code
    this.stage = error.stage
    this.body = body
  }
}

function headers(more) {
  return key ? { ...more, Authorization: 'Bearer ' + key } : more || {}
}

// ask sends a request; a body that is no text or file is sent as JSON. The answer is JSON; with file it is the text of a file, and what of a
// model that has lost.
export async function ask(method, path, { body, type, signal, file } = {}) {
  const plain = typeof body === 'string' || body instanceof Blob
  let response
  try {
    response = await fetch(path, {
      method, signal, cache: 'no-store', credentials: 'omit',
      headers: headers(body === undefined ? {} : { 'Content-Type': type || 'application/json' }),
      body: body === undefined || plain ? body : JSON.stringify(body),
    })
  } catch (err) {
    if (err.name === 'AbortError') throw err
    throw new Failed(0, { code: 'infrastructure', message: 'the gateway does not answer', stage: 'page' })
  }
  if (!response.ok) throw await failure(response)
  if (file) return { text: await response.text(), lost: decodeURIComponent(response.headers.get('Btn-Losses') || '') }
  return response.status === 204 ? null : response.json()
}

async function failure(response) {
  let body = null
  try {
    body = await response.json()
  } catch { /* what is in front of the gateway speaks no JSON */ }
  const error = body?.error || { code: 'infrastructure', message: 'HTTP ' + response.status, stage: 'gateway' }
  return new Failed(response.status, error, body)
}

export const get = (path, signal) => ask('GET', path, { signal })

// events reads server-sent events. EventSource cannot send a key.
export async function* events(path, signal) {
  const response = await fetch(path, { headers: headers({ Accept: 'text/event-stream' }), signal, cache: 'no-store', credentials: 'omit' })
  if (!response.ok) throw await failure(response)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const parts = (rest + value).split('\n\n')
    rest = parts.pop()
    for (const part of parts) {
      let event = 'message'
      let data = ''
      for (const line of part.split('\n')) {
        if (line.startsWith('event: ')) event = line.slice(7)
        else if (line.startsWith('data: ')) data += line.slice(6)
      }
      if (data) yield { event, data: JSON.parse(data) }
    }
  }
}

// access is what this page may do: nothing is changed unless the gateway was started with keys, and has one that may.
export const access = { known: false, keys: false, ask: false, change: false, tenant: '', why: '' }

// learnAccess asks what the gateway allows.
export async function learnAccess() {
  try {
    const status = await get('v1/status')
    const a = status.access
    Object.assign(access, {
      known: true, keys: a.keys, tenant: a.tenant || '', ask: !a.read_only, change: a.keys && !a.read_only,
      why: a.read_only ? 'the key may read only' : a.keys ? '' : 'the gateway was started without keys',
    })
  } catch (err) {
    Object.assign(access, { known: err.status === 401, keys: err.status === 401, tenant: '', ask: false, change: false, why: err.message })
  }
  return access
}

export const segment = encodeURIComponent
