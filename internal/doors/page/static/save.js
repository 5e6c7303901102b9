// Files that the page saves: models in a format of choice, answers as JSON, tables as CSV.

import { alarm, h, say } from './dom.js'
import { modelOf } from './words.js'

// formats are those that a model is written in, with the ending of the file's name.
const formats = [
  ['bif', 'BIF'], ['xmlbif', 'XMLBIF'], ['xdsl', 'XDSL, of GeNIe'], ['net', 'NET, of Hugin'], ['dsc', 'DSC'], ['json', 'JSON, of basetensor'],
  ['uai', 'UAI'], ['cnf', 'CNF, DIMACS'], ['fg', 'FG, of libDAI'], ['cfn', 'CFN, of toulbar2'],
]

// saveFile has the browser save a text.
export function saveFile(name, text, type = 'text/plain') {
  const url = URL.createObjectURL(new Blob([text], { type: type + ';charset=utf-8' }))
  h('a', { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), 60e3)
  say(name + ' is saved')
}

// csvOf writes rows. Text that a spreadsheet would run as a formula has an apostrophe in front, as in files of btn cases.
export function csvOf(rows) {
  return rows.map(row => row.map(cell).join(',') + '\n').join('')
}

function cell(value) {
  let text = String(value)
  if (/^[=+\-@\t\r\n]/.test(text) && !Number.isFinite(Number(text))) text = "'" + text
  return /[",\n\r]|^\s|\s$/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text
}

// fileName is that of a file about a job or a model.
export const fileName = (name, ending) => modelOf(name).replace(/^without a name, /, 'model-').replace(/[^A-Za-z0-9_@.-]+/g, '-') + ending

// modelSaver saves the model of a graph in a format, and says what that lacks.
export function modelSaver(source) {
  const format = h('select', { id: 'save-format' }, formats.map(([name, text]) => h('option', { value: name }, text)))
  const says = h('p', { class: 'hint', role: 'status' })
  if (!source.graph.bayes) format.value = 'json'
  const button = h('button', { type: 'button', id: 'save-model', onclick: save }, 'Save')
  async function save() {
    button.disabled = true
    says.textContent = ''
    try {
      const { text, lost } = await source.file(format.value)
      saveFile(fileName(source.name, '.' + format.value), text)
      says.textContent = lost || 'saved'
    } catch (err) {
      if (err.name !== 'AbortError') alarm(err.message)
    } finally {
      button.disabled = false
    }
  }
  format.addEventListener('change', () => { says.textContent = '' })
  return h('details', { class: 'save' }, h('summary', {}, 'Save the model'), h('p', { class: 'row' }, h('label', {}, 'Format ', format), button), says)
}
