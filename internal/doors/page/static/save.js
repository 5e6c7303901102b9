// Files that the page saves: models in a format of choice, answers as JSON, tables as CSV.

import { access, ask, segment } from './api.js'
import { h, say } from './dom.js'
import { nameOf } from './models.js'
import { modelOf, spoken } from './words.js'

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
  if (/^[=+\-@\t\r\n]/.test(text) && Number.isNaN(Number(text)) && !/^[+-]inf$/.test(text)) text = "'" + text
  return /[",\n\r]|^\s|\s$/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text
}

// fileName is that of a file about a job or a model.
export const fileName = (name, ending) => modelOf(name).replace(/^without a name, /, 'model-').replace(/[^A-Za-z0-9_@.-]+/g, '-') + ending

// modelSaver saves the model of a graph, with its edits: in a format, saying what that lacks, and with a key that may under a name.
export function modelSaver(source) {
  const format = h('select', { id: 'save-format' }, formats.map(([name, text]) => h('option', { value: name }, text)))
  const name = h('input', { id: 'save-name', autocomplete: 'off', spellcheck: 'false', required: true, pattern: '[A-Za-z0-9_.\\-]{1,64}' })
  const says = h('p', { class: 'hint', role: 'status' })
  if (!source.graph.bayes) format.value = 'json'

  async function save() {
    const { text, lost } = await source.file(format.value)
    saveFile(fileName(source.name, '.' + format.value), text)
    says.textContent = lost || 'saved'
  }

  async function register() {
    const { text } = await source.file('json')
    const put = nameOf(await ask('PUT', 'v1/models/' + segment(name.value.trim()) + '?format=json', { body: text, type: 'application/octet-stream' }))
    says.replaceChildren(h('a', { href: '#/graph/model/' + segment(put) }, put), ' is registered')
    name.value = ''
  }

  // form does one of them, and says where it fails.
  function form(label, button, does) {
    const doing = async event => {
      event.preventDefault()
      button.disabled = true
      says.textContent = ''
      try {
        await does()
      } catch (err) {
        if (err.name !== 'AbortError') says.replaceChildren(h('span', { class: 'wrong' }, spoken(err.message)))
      } finally {
        button.disabled = false
      }
    }
    return h('form', { class: 'row', onsubmit: doing }, label, button)
  }
  format.addEventListener('change', () => { says.textContent = '' })
  return h('details', { class: 'save' }, h('summary', {}, 'Save the model'),
    form(h('label', {}, 'Format ', format), h('button', { id: 'save-model' }, 'Save'), save),
    access.change ? form(h('label', {}, 'Name ', name), h('button', { id: 'register-model' }, 'Register'), register) : null, says)
}
