// A model file that somebody opens: it is asked for all posteriors as a job of its own, and shown as a graph. Nothing is registered.

import { access, ask, segment } from './api.js'
import { alarm, h, hush, say } from './dom.js'
import example from './example.js'

const endings = {
  uai: 'uai', json: 'json', bif: 'bif', xmlbif: 'xmlbif', bifxml: 'xmlbif', xml: 'xmlbif', net: 'net', hugin: 'net', dsc: 'dsc', xdsl: 'xdsl',
  cnf: 'cnf', wcnf: 'cnf', dimacs: 'cnf', dne: 'dne', dnet: 'dne', dsl: 'dsl', pgmx: 'pgmx', fg: 'fg', wcsp: 'wcsp', cfn: 'cfn',
}

export const kinds = 'BIF, XMLBIF, XDSL, NET, DSC, DNE, DSL, PGMX, UAI, CNF, FG, WCSP, CFN or native JSON; .gz too.'

// formatOf is the format that the ending of a file's name says; undefined without.
export const formatOf = name => endings[name.replace(/\.gz$/, '').split('.').pop().toLowerCase()]

// plainName is a file's name without endings, as names of models and jobs can be.
export const plainName = name => name.replace(/\.gz$/, '').replace(/\.[a-z]+$/i, '').replace(/[^A-Za-z0-9_-]+/g, '-')

// unpacked is a file, decompressed where it ends in .gz.
export async function unpacked(file) {
  return file.name.endsWith('.gz') ? new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).blob() : file
}

let opening = new AbortController()

// openFile asks and shows a model file, in place of one that is still being opened.
export async function openFile(file) {
  if (!access.ask) return alarm('A file cannot be opened: ' + (access.why || 'the key may read only'))
  opening.abort()
  const { signal } = opening = new AbortController()
  hush()
  say('opening ' + file.name)
  try {
    await show(file.name, await (await unpacked(file)).text(), signal)
  } catch (err) {
    if (!signal.aborted) alarm(file.name + ': ' + err.message.replace(/^text: /, '')) // the field of the request
  }
}

// show asks a model for all posteriors, and shows it as a graph.
async function show(name, text, signal) {
  const job = (plainName(name).slice(0, 48) || 'file') + '-' + Math.floor(Math.random() * 36 ** 6).toString(36).padStart(6, '0')
  const body = { job, text, format: formatOf(name), marginals: true, async: true, deadline_ms: 30000 }
  const asked = await ask('POST', 'v1/infer', { body, signal })
  if (!signal?.aborted) location.hash = '#/graph/job/' + segment(asked.job)
}

// exampleOpener is a button that opens a small network.
export function exampleOpener() {
  return h('button', { type: 'button', id: 'open-example', onclick: () => show('asia.json', JSON.stringify(example)).catch(err => alarm(err.message)) }, 'Open an example')
}

// opener is a button for a file.
export function opener() {
  const input = h('input', { type: 'file', id: 'open-file', class: 'unseen', tabindex: -1, 'aria-label': 'Model file', onchange: () => input.files[0] && openFile(input.files[0]) })
  return [h('button', { type: 'button', class: 'first', id: 'open-button', onclick: () => input.click() }, 'Open a file'), input]
}

let rowTaker = null

// takeRows has take called with a file of rows that is dropped, until the signal.
export function takeRows(take, signal) {
  rowTaker = take
  signal.addEventListener('abort', () => {
    if (rowTaker === take) rowTaker = null
  })
}

// drop takes a file: rows are asked of the model that is open, a model is opened.
function drop(file) {
  if (!/\.(csv|tsv|cas)(\.gz)?$/i.test(file.name)) return openFile(file)
  hush()
  if (rowTaker) return rowTaker(file)
  alarm(file.name + ': its rows are asked of a model: open one first' + (access.ask ? '' : ', and ' + access.why))
}

// takeDrops takes what is dropped anywhere on the page.
export function takeDrops() {
  const carries = event => event.dataTransfer?.types.includes('Files')
  const shade = h('div', { id: 'shade', hidden: true }, h('p', {}, 'Drop a model file to open it, or a CSV file to ask its rows'))
  document.body.append(shade)
  document.addEventListener('dragover', event => {
    if (!carries(event)) return
    event.preventDefault()
    shade.hidden = false
  })
  document.addEventListener('dragleave', event => {
    if (!event.relatedTarget) shade.hidden = true
  })
  document.addEventListener('drop', event => {
    shade.hidden = true
    if (!carries(event) || event.target.matches?.('input[type="file"]')) return
    event.preventDefault()
    if (event.dataTransfer.files[0]) drop(event.dataTransfer.files[0])
  })
}
