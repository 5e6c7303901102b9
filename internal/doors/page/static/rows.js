// Rows of a CSV file, each asked of the model that is open, as btn cases does.

import { ask } from './api.js'
import { h, put, say } from './dom.js'
import { count, probability, whole } from './format.js'
import { listOf } from './lists.js'
import { unpacked } from './open.js'
import { csvOf, fileName, saveFile } from './save.js'
import { during, errorOf, spoken } from './words.js'

const most = { bytes: 16 << 20, shown: 100, columns: 60 }

// rowAsker returns an element with the rows of the file that take was called with last. modelOf returns the model as requests have it.
export function rowAsker({ graph, of, modelOf, signal }) {
  const element = h('section', { hidden: true, 'aria-labelledby': 'rows-title', class: 'file-rows' })
  const title = h('h2', { id: 'rows-title', tabindex: -1 })
  const targets = field('rows-targets', 'Posteriors of')
  const copied = field('rows-copy', 'Columns to copy')
  const ignored = field('rows-ignore', 'Columns to leave out')
  const button = h('button', { class: 'first', id: 'rows-ask' }, 'Ask the rows')
  const answer = h('div', { 'aria-live': 'polite' })
  const positions = new Map(graph.variables.map((_, v) => [of.name(v), v]))
  let file = null // its name, text and columns
  let asking = null

  put(element, h('div', { class: 'head' }, title), h('form', {
    class: 'row', 'aria-label': 'What to ask of each row', onsubmit: event => {
      event.preventDefault()
      askRows()
    },
  }, targets.parentElement, copied.parentElement, ignored.parentElement, button), answer)

  // take reads a file, and asks its rows for the variables that it has no column of.
  async function take(one) {
    asking?.abort()
    element.hidden = false
    title.textContent = 'Rows of ' + one.name
    put(answer)
    title.focus()
    title.scrollIntoView({ block: 'nearest' })
    try {
      const text = await plain(one)
      file = { name: one.name, text, columns: columnsOf(text) }
    } catch (err) {
      file = null
      return wrong(err)
    }
    for (const field of [copied, ignored]) field.value = columnsIn(field.value).filter(name => file.columns.includes(name)).join(', ')
    const unseen = [...positions.keys()].filter(variable => !file.columns.includes(variable))
    const cells = unseen.reduce((n, variable) => n + graph.variables[positions.get(variable)].domain, 0)
    targets.value = cells > most.columns ? '' : unseen.join(', ')
    return askRows()
  }

  // columnsIn are the names of columns in a field.
  const columnsIn = text => listOf(text, part => file.columns.includes(part) ? part : undefined, part => part)

  async function askRows() {
    if (!file) return
    asking?.abort()
    const mine = asking = new AbortController()
    signal.addEventListener('abort', () => mine.abort(), { once: true })
    put(answer, h('p', { class: 'hint' }, 'asking…'))
    const variables = listOf(targets.value, part => positions.has(part) ? part : undefined, part => part)
    try {
      const table = await ask('POST', 'v1/cases', {
        body: { ...await modelOf(), cases: file.text, targets: variables, id: columnsIn(copied.value), ignore: columnsIn(ignored.value) }, signal: mine.signal,
      })
      if (!mine.signal.aborted) show(table)
    } catch (err) {
      if (err.name !== 'AbortError' && !mine.signal.aborted) wrong(err)
    }
  }

  function wrong(err) {
    say(err.message)
    put(answer, h('div', { class: 'error', role: 'group', 'aria-label': 'Error' }, h('p', {}, h('strong', {}, err.code ? errorOf(err.code) : 'not asked'), during(err.stage)),
      h('p', { class: 'message' }, spoken(err.message))))
    element.scrollIntoView({ block: 'nearest' })
  }

  function show({ columns, rows, failed, has_more: hasMore }) {
    const numbers = columns.map(name => name.startsWith('P(') || name === 'ln_p_evidence')
    const last = columns.length - 1
    const cell = (text, c) => h('td', { class: numbers[c] ? 'number' : null, title: numbers[c] ? text : null },
      columns[c].startsWith('P(') && text ? probability(Number(text)) : text)
    // line is a row, with its error below it, in sight on any screen
    const line = row => [h('tr', { class: row[last] ? 'wrong' : null }, row.slice(0, last).map(cell)),
      row[last] ? h('tr', { class: 'why' }, h('td', { colspan: last }, h('span', {}, `row ${row[0]}: `, row[last]))) : null]
    const said = `${count(rows.length, 'row')}${failed ? ', ' + whole(failed) + ' with an error' : ''}`
    say(said)
    put(answer, h('div', { class: 'head' }, h('span', {}, said + (hasMore ? `: the first of the file, of which btn cases asks all` : '')),
      h('button', { type: 'button', id: 'rows-save', onclick: () => saveFile(fileName(file.name.replace(/\.[a-z]+(\.gz)?$/i, ''), '-answers.csv'), csvOf([columns, ...rows]), 'text/csv') }, 'Save as CSV')),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Answers to the rows' }, h('table', { class: 'list answers' },
      h('thead', {}, h('tr', {}, columns.slice(0, last).map((name, c) => h('th', { scope: 'col', class: numbers[c] ? 'number' : null }, name)))),
      h('tbody', {}, rows.slice(0, most.shown).map(line)))),
    rows.length > most.shown ? h('p', { class: 'hint' }, `The first ${most.shown} rows: a file that is saved has all ${whole(rows.length)}.`) : null)
    element.scrollIntoView({ block: 'nearest' })
  }

  return {
    element, take,
    // edited says that the answers are those of another model by now.
    edited() {
      if (answer.querySelector('table') && !answer.querySelector('.warning')) answer.prepend(h('p', { class: 'warning' }, 'The model was edited since these rows were asked.'))
    },
  }
}

function field(id, label) {
  const input = h('input', { id, autocomplete: 'off', spellcheck: 'false' })
  h('label', {}, label + ' ', input)
  return input
}

// plain is the text of a file, decompressed and decoded.
async function plain(file) {
  if (file.size > most.bytes) throw new Error(`${file.name} has more than ${most.bytes >> 20} MiB: btn cases asks files of any length`)
  const bytes = new Uint8Array(await (await unpacked(file)).arrayBuffer())
  if (bytes.length > most.bytes) throw new Error(`${file.name} has more than ${most.bytes >> 20} MiB: btn cases asks files of any length`)
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : ''
  try {
    return new TextDecoder(wide || 'utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error(`${file.name} is not in UTF-8: save it as that`)
  }
}

// columnsOf are the names in the first line, as far as what is asked for at first depends on them: the service reads the file.
const columnsOf = text => text.split(/[\r\n]/, 1)[0].split(/[,;\t]/).map(name => name.trim().replace(/^"(.*)"$/, '$1').replaceAll('""', '"'))
