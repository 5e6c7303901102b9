// The bytes of the wire contract, version 1 (docs/reference/wire.md): messages, headers, lanes, and the digest of a request.
import { createHash } from 'node:crypto'
import { decode, encode } from '@msgpack/msgpack'

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

/** A list of floats: a bin of little-endian float64. */
export function floats(list) {
  const bin = new Uint8Array(8 * list.length)
  const view = new DataView(bin.buffer)
  list.forEach((x, i) => view.setFloat64(8 * i, x, true))
  return bin
}

/** The lane of a tenant: a token of the subjects of its jobs. */
export const lane = (tenant = '') => createHash('sha256').update(tenant).digest()[0] % 16

/** The payload of a message. Fields that are undefined are left out; keys may come in any order. */
export const toBytes = (name, fields) => encode({ t: name, v: 1, ...fields }, { ignoreUndefined: true })

/** The fields of a message. Unknown ones stay: version 1 grows by optional fields. */
export function fromBytes(name, bytes) {
  const { t, v, ...fields } = decode(bytes)
  if (v !== 1) throw new Error(`a message of version ${v}, this program reads version 1`)
  if (t !== name) throw new Error(`a ${t} where a ${name} belongs`)
  return fields
}

// What follows is the digest of a request: SHA-256 of its model message in the one form that basetensor writes it in.
// A client can do without. It is the way to see that a job's id is taken by the same request, whoever wrote it.

const concat = (parts) => Buffer.concat(parts)

// The header of an array or map of n.
function header(n, small, large) {
  if (n < 16) return Uint8Array.of(small | n)
  if (n < 65536) return Uint8Array.of(large, n >> 8, n & 255)
  return Uint8Array.of(large + 1, n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255)
}

const leaf = (x) => encode(x ?? null) // strings, booleans, integers, bins: the shortest form
const float = (x) => {
  const b = Buffer.alloc(9, 0xcb)
  b.writeDoubleBE(x, 1)
  return b
}
const list = (of) => (xs) => (xs == null ? leaf(null) : concat([header(xs.length, 0x90, 0xdc), ...xs.map(of)]))

// A map with its fields in their order. Those with a ? are left out if they are null, false, 0, or empty all through.
function struct(fields) {
  const encodeFields = (value, common = {}) => {
    const parts = Object.entries(common).flatMap(([key, x]) => [leaf(key), leaf(x)])
    for (const [key, of] of Object.entries(fields)) {
      const name = key.replace('?', '')
      if (key === name || !absent(value[name], of)) parts.push(leaf(name), of(value[name]))
    }
    return concat([header(parts.length / 2, 0x80, 0xde), ...parts])
  }
  encodeFields.empty = (value) => Object.entries(fields).every(([key, of]) => key.endsWith('?') && absent(value[key.slice(0, -1)], of))
  return encodeFields
}
const absent = (x, of) => !x || x.length === 0 || (of.empty?.(x) ?? false)

// A struct that is left out when it is not there, but written when it is there and empty.
const optional = (of) => (value) => of(value)

const scaled = struct({ m: leaf, 'e?': list(leaf) })
const tensor = struct({
  kind: leaf, shape: list(leaf), 'data?': leaf, 'weights?': leaf, 'vectors?': list(leaf),
  'levels?': optional(struct({ d: leaf, tables: list(leaf), legs: list(leaf) })), 'values?': optional(scaled),
  'terms?': list(struct({ alpha: float, s: scaled, r: list(leaf) })),
})
const model = struct({
  job: leaf, 'tenant?': leaf,
  'model?': optional(struct({
    domains: list(leaf), 'names?': list(leaf), 'states?': list(list(leaf)), factors: list(struct({ scope: list(leaf), table: tensor })), 'bayes?': leaf,
    'aliases?': list(leaf), 'layout?': leaf, 'lines?': list(leaf), 'row_lines?': list(list(leaf)),
  })),
  'text?': leaf, 'model_digest?': leaf,
  queries: list(struct({
    'evidence?': struct({ 'h?': list(struct({ v: leaf, x: leaf })), 's?': list(struct({ v: leaf, w: leaf })) }),
    'evid?': leaf, 'named?': optional(struct({
      'joint?': list(leaf), 'targets?': list(leaf), 'map?': list(leaf),
      'sensitivity?': optional(struct({ variable: leaf, value: leaf, 'range?': float, 'top?': leaf })),
      'information?': optional(struct({ target: leaf, 'candidates?': list(leaf), 'utility?': leaf })), 'do?': leaf, 'believe?': leaf,
    })),
    'file?': leaf, 'marginals?': leaf, 'targets?': list(leaf), 'over?': leaf, 'joint?': list(leaf), 'gradients?': leaf,
    'sensitivity?': optional(struct({ v: leaf, x: leaf, 'range?': float, 'top?': leaf })),
    'mpe?': leaf, 'best?': leaf, 'map?': list(leaf), 'samples?': leaf, 'seed?': leaf,
    'cases?': optional(struct({ variables: list(leaf), rows: list(list(leaf)), 'weights?': leaf })), 'conflict?': leaf,
    'information?': optional(struct({ target: leaf, 'candidates?': list(leaf), 'utility?': list(leaf) })),
    'do?': list(struct({ v: leaf, x: leaf })), 'believe?': list(struct({ v: leaf, w: leaf })),
    'switches?': list(struct({ v: leaf, x: leaf, n: leaf, of: leaf })),
  })),
  'settings?': struct({
    'method?': leaf, 'objective?': leaf, 'components?': leaf, 'maps?': leaf, 'cores?': leaf, 'seed?': leaf, 'memory?': leaf, 'no_exact?': leaf, 'bond?': leaf,
    'budget?': float, 'accuracy?': float,
  }),
  'deadline_ms?': leaf,
})

const defaults = {
  method: 'auto', maps: 'identity', cores: 'factors', memory: 2 ** 31, budget: 1.8e11, accuracy: 1e-9,
}

/** The digest of a request, given as the fields of its model message. */
export function digest(request) {
  const given = Object.fromEntries(Object.entries(request.settings ?? {}).filter(([, x]) => x))
  const settings = { ...defaults, ...given }
  if (settings.method === 'symmetry-cp') {
    settings.objective ??= (given.maps ?? 'identity') === 'identity' ? 'variance' : 'frobenius'
    settings.components ??= settings.objective === 'frobenius' ? 4 : 16
  }
  return sha256(model({ ...request, settings }, { t: 'model', v: 1 }))
}
