// Words of people for what messages call by names of programs.

export const stages = { 'reparam-worker': 'preparing', 'learn-worker': 'planning', 'contract-worker': 'computing', aggregator: 'answering' }

const places = { gateway: 'the gateway', client: 'the program that asked', page: 'this page' }

// errors are what codes of errors mean, and whether asking again helps, as docs/reference/wire.md has it.
export const errors = {
  bad_input: ['wrong input', 'The model, the evidence or the message is wrong: the same request fails again.'],
  unsupported: ['not supported', 'This version does not do what was asked: the same request fails again.'],
  over_budget: ['too large', 'It needs more memory or work than the request or the worker allows: the same request fails again.'],
  deadline: ['too late', 'The deadline passed: it needs a later one.'],
  cancelled: ['cancelled', 'Somebody cancelled it: the same request may succeed.'],
  failed_estimate: ['no estimate', 'The estimate came out negative, or without a digit left: other settings may succeed.'],
  damaged: ['damaged on its way', 'The request came with other bits than it was sent with: sent again, it may succeed.'],
  infrastructure: ['trouble of the service', 'The message queue, the cache or the storage failed for long: the same request may succeed.'],
  internal: ['fault of the program', 'A fault of the program.'],
}

export const errorOf = code => errors[code]?.[0] || code || 'failed'

// during says where an error came up.
export const during = stage => stages[stage] ? ' while ' + stages[stage] : places[stage] ? ' in ' + places[stage] : stage ? ' in ' + stage : ''

// spoken is a text of a service without the unit nats, which is taken for the message queue of that name.
export const spoken = text => text.replace(/(\d|inf) nats\b/gi, '$1 in natural logarithms')

// modelOf is what a model is called that may have a digest alone.
export const modelOf = name => /^[0-9a-f]{6,64}$/.test(name) ? 'without a name, ' + name.slice(0, 6) : name

// stores are what streams hold.
export const stores = {
  BTN_MODEL: 'jobs', BTN_NETWORK: 'prepared jobs', BTN_TASK: 'tasks', BTN_PARTIAL: 'results of tasks', BTN_ANSWER: 'answers', BTN_BLOB: 'large messages',
  BTN_DLQ: 'what was given up', BTN_CONTROL: 'cancels and restarts', BTN_DEADLINE: 'deadlines', BTN_GRAPH: 'registered models',
}
